// Requests the figures of a filtered list after each change, since live values are of all instances.

import { follow } from "../shared/fetcher.js";

const terms = () => document.querySelector("[data-list]").dataset;

export class SearchCounts {
  #found = null;
  #ask;

  /** `changed` is called when the figures differ. */
  constructor(changed) {
    this.#ask = follow(
      () => terms().counts,
      (found) => {
        const before = JSON.stringify(this.#now());
        this.#found = found;
        if (JSON.stringify(this.#now()) !== before) changed();
      },
    );
  }

  get narrowed() {
    return "counts" in terms();
  }

  /** Reports that instances have moved. */
  heard() {
    if (this.narrowed) this.#ask();
  }

  /** Returns {counts, total, partial} for a live value: its own, or those of the filter. */
  of({ counts, total }) {
    return this.narrowed ? this.#now() : { counts, total, partial: false };
  }

  // Until the first response, those that the page was rendered with.
  #now() {
    const { counts, total, complete } = this.#found ?? JSON.parse(terms().tally);
    return { counts, total, partial: !complete };
  }
}
