// Suspends updates while the page's tab has been hidden for a while.

const QUIET_AFTER = 15000; // ms in the background

export class Rest {
  #host;
  #resting = false;
  #timer = null;

  /** `host`: rested(resting) on a change, then seen(hidden) whenever the tab is hidden or shown. */
  constructor(host) {
    this.#host = host;
    document.addEventListener("visibilitychange", () => this.look());
  }

  get resting() {
    return this.#resting;
  }

  look() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#set(true), QUIET_AFTER);
    else this.#set(false);
    this.#host.seen(document.hidden);
  }

  #set(resting) {
    if (resting === this.#resting) return;
    this.#resting = resting;
    this.#host.rested(resting);
  }
}
