// Computes rates from counters that only grow, as differences of samples, so that a missed sample does no harm.

const WINDOW = 30_000; // ms over which a rate is computed
const LEAST = 2000; // ms of samples needed for a rate
const APART = 500; // ms: closer samples are merged

/** Holds samples of a set of counters; `at` is the server's time in ms. */
export class Counters {
  #samples = [];
  #epoch = "";

  /** Adds a sample, `values`: {name: count}. Starts again after a new epoch or when a counter or the clock went back. */
  add(at, values, epoch = "") {
    const last = this.#samples.at(-1);
    if (epoch !== this.#epoch || (last && (at < last.at || wentBack(last.values, values)))) this.#samples = [];
    this.#epoch = epoch;
    if (this.#samples.length > 1 && at - this.#samples.at(-2).at < APART) this.#samples.pop();
    this.#samples.push({ at, values });
    while (this.#samples.length > 1 && this.#samples[1].at <= at - WINDOW) this.#samples.shift();
  }

  /** Returns increments per second, or null with too few samples. The last sample counts as valid until `now`. */
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
