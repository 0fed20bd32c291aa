// Computes what a diagram shows in each mode. dashboard/pages/machines/diagram_modes.py does the same and has the scales.

import { brief, short } from "../shared/format.js";
import { countOf, takenOf } from "./overlay.js";
import { Counters } from "../shared/rates.js";

const MINUTE = 60_000;
const NOTHING = { text: "", still: true };

/** Computes how often transitions were taken lately, from the counters of one version. */
export class Tempo {
  #counters = new Counters();

  /** Adds a sample. `flow`: {id: count} of transitions taken at least once; `ids`: all transitions. */
  add({ at, epoch }, ids, flow, others) {
    const values = Object.fromEntries(ids.map((id) => [id, flow[id] ?? 0]));
    this.#counters.add(at, { ...values, others }, epoch);
  }

  /** Returns how often a minute the transitions were taken together; null with too few samples. */
  perMinute(ids, now) {
    const rates = ids.map((id) => this.#counters.rate(id, now));
    return rates.includes(null) ? null : rates.reduce((all, rate) => all + rate * 60, 0);
  }
}

/** Returns the readings of a mode for `putDrawing`. `tempo` and `now` serve rates; `value.failing`: leaf -> instances in
 *  error; `label`: the name of the mode. */
export function readings(mode, bounds, value, { drawing, tempo, now, label }) {
  const marked = (figure, text) => ({ text, heat: bounds.filter((least) => figure >= least).length });
  const counted = (part) => countOf(part, value.counts);
  const more = value.partial ? "+" : ""; // a lower bound
  const plain = {
    state: (part) => marked(counted(part), `${short(counted(part))}${more}`),
    edge: (part) => ({ text: takenOf(part, value.flow) ? short(takenOf(part, value.flow)) : "" }),
    queue: ({ ready = 0 }) => ({ text: short(ready) }),
    name: (part, { text }) => {
      const told = mode === "count" || !text ? "" : `, ${label.toLowerCase()} ${text}`;
      return `${part.dataset.state}: ${short(counted(part))}${told}`;
    },
  };
  const length = (ms) => (ms === null ? NOTHING : { ...marked(ms, brief(ms)), still: true });
  const special = {
    age: { state: (part) => length(ageOf(part, value)) },
    flow: {
      state: (part) => ({ text: short(counted(part)) }),
      edge: (part) => {
        const rate = tempo.perMinute(idsOf(part), now);
        return rate ? { ...marked(rate, perMinute(rate)), still: true } : NOTHING;
      },
    },
    failures: {
      state: (part) => marked(countOf(part, value.failing), short(countOf(part, value.failing))),
      queue: ({ dead = 0 }) => marked(dead, short(dead)),
    },
    time: { state: (part) => length(stayOf(part, counted(part), drawing, (ids) => tempo.perMinute(ids, now))) },
  };
  return { ...plain, ...special[mode] };
}

/** Returns the ids of the transitions that a line stands for. */
export function idsOf({ dataset }) {
  return dataset.transition.split(" ");
}

function leavesOf({ dataset }) {
  return dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
}

function ageOf(part, { counts, oldest, now }) {
  const entered = leavesOf(part).filter((leaf) => counts[leaf] && oldest[leaf]).map((leaf) => oldest[leaf]);
  return entered.length ? Math.max(0, now - Math.min(...entered)) : null;
}

// By Little's law: mean stay = instances in the state / departures a minute. Null where nothing leaves, and where instances
// leave by a transition of an enclosing state or in another version, since those cannot be told apart.
function stayOf(part, count, drawing, rate) {
  const own = part.dataset.state;
  const around = [...drawing.querySelectorAll(".cluster[data-leaves]")]
    .filter((cluster) => cluster !== part && leavesOf(part).every((leaf) => leavesOf(cluster).includes(leaf)))
    .map(({ dataset }) => dataset.state);
  const ways = [...drawing.querySelectorAll("[data-transition][data-target]")];
  const of = (names) => rate(ways.filter(({ dataset }) => names.includes(dataset.source)).flatMap(idsOf));
  const leaving = of([own]);
  if (!count || !leaving || of(around) || rate(["others"])) return null;
  return (count / leaving) * MINUTE;
}

function perMinute(rate) {
  return rate < 10 ? rate.toFixed(1) : short(Math.round(rate));
}
