// Suspends updates while the page is paused, or its tab has been hidden for a while.

const QUIET_AFTER = 15000; // ms in the background

export class Rest {
  #host;
  #why = new Set(); // "paused", "hidden"
  #timer = null;

  /** `host`: rested(resting) on a change, then seen(hidden) whenever the tab is hidden or shown. */
  constructor(host) {
    this.#host = host;
    document.addEventListener("visibilitychange", () => this.look());
  }

  get resting() {
    return this.#why.size > 0;
  }

  pause(paused) {
    this.#set("paused", paused);
  }

  look() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#set("hidden", true), QUIET_AFTER);
    else this.#set("hidden", false);
    this.#host.seen(document.hidden);
  }

  #set(why, holds) {
    const before = this.resting;
    if (holds) this.#why.add(why);
    else this.#why.delete(why);
    if (this.resting !== before) this.#host.rested(this.resting);
  }
}
