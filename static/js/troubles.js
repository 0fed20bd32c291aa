// How many instances are in error in each leaf: asked of the server while there may be some, since no step tells.

const PAUSE = 2000; // ms between two questions, however fast the machine runs

export class Troubles {
  counts = {};
  #url;
  #asked = -Infinity;
  #waiting = false;
  #changed;

  /** `url` answers with {counts}; `changed` is called when they differ from before. */
  constructor(url, counts, changed) {
    this.#url = url;
    this.counts = counts;
    this.#changed = changed;
  }

  /** Something happened: `likely` where it may have to do with errors. */
  heard(likely) {
    if (this.#waiting || !(likely || Object.keys(this.counts).length)) return;
    this.#waiting = true;
    setTimeout(() => this.#ask(), Math.max(0, this.#asked + PAUSE - performance.now()));
  }

  async #ask() {
    this.#waiting = false;
    this.#asked = performance.now();
    try {
      const response = await fetch(this.#url, { credentials: "same-origin", signal: AbortSignal.timeout(10000) });
      if (!response.ok || response.redirected) return;
      const { counts } = await response.json();
      if (JSON.stringify(counts) === JSON.stringify(this.counts)) return;
      this.counts = counts;
      this.#changed();
    } catch {
      // the next change asks again
    }
  }
}
