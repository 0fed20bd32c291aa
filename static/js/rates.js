// Rates out of counters that only grow: differences of what was seen, so that a missed value costs nothing.

const WINDOW = 30_000; // ms that a rate is taken over
const LEAST = 2000; // ms that must have been seen before one is told
const APART = 500; // ms: samples closer together than this are one

/** The samples of one thing's counters; `at` is the server's time in ms. */
export class Counters {
  #samples = [];
  #epoch = "";

  /** `values`: {name: count}. A new epoch, or a counter that went back (another server, an older file): begins anew. */
  add(at, values, epoch = "") {
    const last = this.#samples.at(-1);
    if (epoch !== this.#epoch || (last && (at < last.at || wentBack(last.values, values)))) this.#samples = [];
    this.#epoch = epoch;
    if (this.#samples.length > 1 && at - this.#samples.at(-2).at < APART) this.#samples.pop();
    this.#samples.push({ at, values });
    while (this.#samples.length > 1 && this.#samples[1].at <= at - WINDOW) this.#samples.shift();
  }

  /** How often a second the counter went up lately; null while too little was seen. `now`: until when the last holds. */
  rate(name, now) {
    const [first] = this.#samples;
    if (!first || now - first.at < LEAST) return null;
    const from = Math.max(first.at, now - WINDOW);
    let before = first;
    for (const sample of this.#samples) if (sample.at <= from) before = sample;
    return ((this.#samples.at(-1).values[name] - before.values[name]) * 1000) / (now - from);
  }
}

function wentBack(old, values) {
  return Object.entries(old).some(([name, count]) => (values[name] ?? 0) < count);
}
