// Whether the page asks for nothing: somebody paused it, or its tab has been out of sight for a while.

const QUIET_AFTER = 15000; // ms in the background

export class Rest {
  #host;
  #why = new Set(); // "paused", "hidden"
  #timer = null;

  /** `host`: rested(resting) where that changes, then seen(hidden) whenever the tab comes or goes. */
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
