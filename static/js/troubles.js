// How many instances are in error in each leaf: asked of the server while there may be some, since no step tells.

import { follow } from "./fetcher.js";

export class Troubles {
  counts = {};
  #ask;

  /** `url` answers with {counts}; `changed` is called when they differ from before. */
  constructor(url, counts, changed) {
    this.counts = counts;
    this.#ask = follow(() => url, ({ counts: found }) => {
      if (JSON.stringify(found) === JSON.stringify(this.counts)) return;
      this.counts = found;
      changed();
    });
  }

  /** Something happened: `likely` where it may have to do with errors. */
  heard(likely) {
    if (likely || Object.keys(this.counts).length) this.#ask();
  }
}
