// Keeps the diagram of a machine up to date: figures of the chosen mode, flow, and warnings.

import { isResting } from "../live/indicator.js";
import { putMarks } from "./marks.js";
import { readings, Tempo } from "./modes.js";
import { putDrawing } from "./overlay.js";
import { follow } from "../shared/fetcher.js";
import { refresh } from "../shared/regions.js";

const TICK = 2000; // ms: ages grow and rates fall while nothing happens
const MINUTE = 60_000; // between two requests for errors that no live value hints at

export class Drawing {
  #version;
  #errors;
  #latest = null;
  #seen = 0; // when `latest` arrived, by the browser's clock

  constructor(version) {
    this.#version = version;
    const { errorsUrl, inError } = terms();
    if (errorsUrl) this.#errors = new ErrorCounts(errorsUrl, JSON.parse(inError), () => this.draw());
    setInterval(() => document.hidden || this.draw(), TICK);
    setInterval(() => isResting() || this.#errors?.heard(true), MINUTE);
    setInterval(() => isResting() || !terms().rates || refresh(["modes"]), MINUTE); // the interval that is said moves on
    document.addEventListener("redrawn", () => this.draw());
  }

  /** Takes a live value of the machine. */
  take(value) {
    const flow = this.#own(value.flow ?? {});
    this.#latest = { ...value, flow, others: sum(value.flow ?? {}) - sum(flow), queues: value.queues ?? {} };
    this.#seen = Date.now();
    const dead = Object.values(this.#latest.queues).some((held) => held.dead > 0);
    this.#errors?.heard(dead || terms().mode === "failures");
  }

  /** Replaces figures of the live value: {counts, partial}. */
  show(figures) {
    this.#latest = { ...this.#latest, ...figures };
  }

  draw() {
    if (!this.#latest) return;
    const { mode, bounds, label, rates } = terms();
    const failing = this.#errors?.counts ?? {};
    const value = { ...this.#latest, failing, now: this.#latest.now + Date.now() - this.#seen };
    const tempo = new Tempo(rates && JSON.parse(rates), value);
    for (const drawing of document.querySelectorAll(".sb-diagram")) {
      putDrawing(drawing, readings(mode, JSON.parse(bounds), value, { tempo, label }), value);
      putMarks(drawing, value.breaches ?? {}, (state) => failing[state] ?? 0);
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

function sum(flow) {
  return Object.values(flow).reduce((all, taken) => all + taken, 0);
}

// Requests how many instances are in error in each state while there may be some. Live values do not report them.

class ErrorCounts {
  counts = {};
  #ask;

  /** `url` returns {counts}; `changed` is called when they differ. */
  constructor(url, counts, changed) {
    this.counts = counts;
    this.#ask = follow(() => url, ({ counts: found }) => {
      if (JSON.stringify(found) === JSON.stringify(this.counts)) return;
      this.counts = found;
      changed();
    });
  }

  /** Reports a change; `likely`: it may concern errors. */
  heard(likely) {
    if (likely || Object.keys(this.counts).length) this.#ask();
  }
}
