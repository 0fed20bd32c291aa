// Requests how many instances are in error in each state while there may be some. Live values do not report them.

import { follow } from "../shared/fetcher.js";

export class ErrorCounts {
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
