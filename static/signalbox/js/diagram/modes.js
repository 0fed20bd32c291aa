// Computes what a diagram shows in each mode. dashboard/catalog/diagram_figures.py does the same, with the scales of
// dashboard/shared/diagram_modes.py.

import { brief, short } from "../shared/format.js";
import { countOf, takenOf } from "./overlay.js";

const MINUTE = 60_000;
const NOTHING = { text: "", still: true };

/** Computes how often transitions are taken: from the interval that the server measured, and from live counters since.
 *  `rates`: as diagram_figures.py writes it. */
export class Tempo {
  #rates;
  #value;

  constructor(rates, value) {
    this.#rates = rates ?? { window: 0, base: {}, exits: {}, around: {} };
    this.#value = value;
  }

  /** Returns how often a minute the transitions were taken together; 0 without measurements. */
  perMinute(ids) {
    return ids.reduce((all, id) => all + this.#since(this.#rates.base[id], this.#value.flow[id]), 0);
  }

  /** Returns the mean stay in a state, ms, by Little's law; null where it is unknown. See `estimate_stays`. */
  stay(state, count) {
    const { exits, around, others } = this.#rates;
    const leaving = this.perMinute(exits[state] ?? []);
    if (!count || !leaving || this.perMinute(around[state] ?? []) || this.#since(others, this.#value.others)) return null;
    return (count / leaving) * MINUTE;
  }

  #since(base = 0, taken = 0) {
    const { window, at } = this.#rates;
    return window ? (Math.max(0, base + taken) * MINUTE) / (window + Math.max(0, this.#value.now - at)) : 0;
  }
}

/** Returns the readings of a mode for `putDrawing`. `tempo` serves rates; `value.failing`: state -> instances in
 *  error; `label`: the name of the mode. */
export function readings(mode, bounds, value, { tempo, label }) {
  const marked = (figure, text) => ({ text, heat: bounds.filter((least) => figure >= least).length });
  const counted = (part) => countOf(part, value.counts);
  const more = value.partial ? "+" : ""; // a lower bound
  const plain = {
    state: (part) => marked(counted(part), `${short(counted(part))}${more}`),
    edge: (part) => ({ text: takenOf(part, value.flow) ? short(takenOf(part, value.flow)) : "" }),
    queue: ({ ready = 0 }) => ({ text: short(ready) }),
    name: (part, { text }) => {
      const suffix = ["count", "flow"].includes(mode) || !text ? "" : `, ${label.toLowerCase()} ${text}`;
      return `${part.dataset.state}: ${short(counted(part))}${suffix}`;
    },
  };
  const length = (ms) => (ms === null ? NOTHING : { ...marked(ms, brief(ms)), still: true });
  const special = {
    age: { state: (part) => length(ageOf(part, value)) },
    flow: {
      state: (part) => ({ text: short(counted(part)) }),
      edge: (part) => {
        const rate = tempo.perMinute(idsOf(part));
        return rate ? { ...marked(rate, perMinute(rate)), still: true } : NOTHING;
      },
    },
    failures: {
      state: (part) => marked(failingIn(part, value), short(failingIn(part, value))),
      edge: () => NOTHING,
      queue: ({ dead = 0 }) => marked(dead, short(dead)),
    },
    tests: { state: () => NOTHING, edge: kept }, // drawn by the server: tests are reported, not live
    time: { state: (part) => length(tempo.stay(part.dataset.state, counted(part))) },
  };
  return { ...plain, ...special[mode] };
}

/** Returns the ids of the transitions that a line stands for. */
export function idsOf({ dataset }) {
  return dataset.transition.split(" ");
}

function kept(part) {
  const heat = [1, 2, 3, 4, 5].find((step) => part.classList.contains(`heat-${step}`)) ?? 0;
  return { text: part.querySelector(".flow")?.textContent ?? "", heat, still: true };
}

function leavesOf({ dataset }) {
  return dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
}

function failingIn(part, { failing }) {
  return failing[part.dataset.state] ?? countOf(part, failing);
}

function ageOf(part, { counts, oldest, now }) {
  const entered = leavesOf(part).filter((leaf) => counts[leaf] && oldest[leaf]).map((leaf) => oldest[leaf]);
  return entered.length ? Math.max(0, now - Math.min(...entered)) : null;
}

function perMinute(rate) {
  return rate < 9.95 ? Math.max(0.1, rate).toFixed(1) : short(Math.round(rate));
}
