// Keeps the diagram of a machine up to date: figures of the chosen mode, flow, and warnings.

import { isResting } from "../live/indicator.js";
import { putMarks } from "./marks.js";
import { idsOf, readings, Tempo } from "./modes.js";
import { countOf, putDrawing } from "./overlay.js";
import { ErrorCounts } from "./errors.js";

const TICK = 2000; // ms: ages grow and rates fall while nothing happens
const MINUTE = 60_000; // between two requests for errors that no live value hints at

export class Drawing {
  #version;
  #tempo = new Tempo();
  #errors;
  #latest = null;
  #seen = 0; // when `latest` arrived, by the browser's clock

  constructor(version) {
    this.#version = version;
    const { troubles, troubled } = terms();
    if (troubles) this.#errors = new ErrorCounts(troubles, JSON.parse(troubled), () => this.draw());
    setInterval(() => document.hidden || this.draw(), TICK);
    setInterval(() => isResting() || this.#errors?.heard(true), MINUTE);
    document.addEventListener("redrawn", () => this.draw());
  }

  /** Takes a live value of the machine and its meta data. */
  take(value, meta) {
    this.#latest = { ...value, flow: this.#own(value.flow ?? {}), queues: value.queues ?? {} };
    this.#seen = Date.now();
    const all = Object.values(value.flow ?? {}).reduce((sum, taken) => sum + taken, 0);
    const own = Object.values(this.#latest.flow).reduce((sum, taken) => sum + taken, 0);
    const ids = [...document.querySelectorAll("[data-transition]")].flatMap(idsOf);
    const known = [...new Set([...Object.keys(this.#latest.flow), ...ids])];
    this.#tempo.add({ ...meta, at: value.now }, known, this.#latest.flow, all - own);
    const dead = Object.values(this.#latest.queues).some((held) => held.dead > 0);
    this.#errors?.heard(dead || terms().mode === "failures");
  }

  /** Replaces figures of the live value: {counts, partial}. */
  show(figures) {
    this.#latest = { ...this.#latest, ...figures };
  }

  draw() {
    if (!this.#latest) return;
    const { mode, bounds, label } = terms();
    const failing = this.#errors?.counts ?? {};
    const value = { ...this.#latest, failing, now: this.#latest.now + Date.now() - this.#seen };
    for (const drawing of document.querySelectorAll(".sb-diagram")) {
      const { now } = value;
      putDrawing(drawing, readings(mode, JSON.parse(bounds), value, { drawing, tempo: this.#tempo, now, label }), value);
      putMarks(drawing, value.breaches ?? {}, ({ dataset }) => failingIn(drawing, dataset.of, failing));
    }
  }

  // The engine counts by version: "3:t2". The diagram is of one.
  #own(flow) {
    const own = Object.entries(flow).filter(([key]) => key.startsWith(`${this.#version}:`));
    return Object.fromEntries(own.map(([key, taken]) => [key.slice(this.#version.length + 1), taken]));
  }
}

/** Returns what the server rendered about the diagram. Another mode changes it. */
function terms() {
  return document.querySelector("[data-region=modes]").dataset;
}

function failingIn(drawing, name, failing) {
  const part = [...drawing.querySelectorAll(".state[data-state]")].find(({ dataset }) => dataset.state === name);
  return part ? countOf(part, failing) : 0;
}
