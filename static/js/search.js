// The figures of a search: asked of the server when something moved, since the live values are of all instances.

import { follow } from "./fetcher.js";

const terms = () => document.querySelector("[data-list]").dataset;

export class SearchCounts {
  #found = null;
  #ask;

  /** `changed` is called when the figures differ from before. */
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

  /** Something moved. */
  heard() {
    if (this.narrowed) this.#ask();
  }

  /** {counts, total, partial} to show beside a live value: its own, or those of the search. */
  of({ counts, total }) {
    return this.narrowed ? this.#now() : { counts, total, partial: false };
  }

  // Before the first answer what the page was rendered with.
  #now() {
    const { counts, total, complete } = this.#found ?? JSON.parse(terms().tally);
    return { counts, total, partial: !complete };
  }
}
