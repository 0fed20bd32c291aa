// How fresh the page is: "live", "stale", "offline", "polling" or "frozen", and the age of its data in seconds.

const TICK = 1000; // ms
const MISSED = 3; // intervals without a word before data counts as stale
const FLOOR = 6000; // ms; intervals may be shorter than a slow network's hiccups

/** Listeners are called as `listener({state, age, reason})` whenever one of them changes; age is null before any data. */
export class Status {
  frozen = false;
  #listeners = new Set();
  #now;
  #state = "offline";
  #reason = "";
  #confirmedAt = null;
  #every = 2000;
  #sent = "";
  #timer;

  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#timer = setInterval(() => this.tell(), TICK);
  }

  on(listener) {
    this.#listeners.add(listener);
    listener(this.current());
    return () => this.#listeners.delete(listener);
  }

  /** Records that the page is up to date; the next message is due in `every` ms. */
  confirm(state, every = this.#every) {
    this.#every = every;
    if (!this.frozen) this.#confirmedAt = this.#now();
    this.set(state);
  }

  /** Freezes or unfreezes. A frozen page ages from the moment at which it was frozen. */
  freeze(frozen) {
    this.frozen = frozen;
    if (frozen) this.#confirmedAt = this.#now();
    this.tell();
  }

  set(state, reason = "") {
    this.#state = state;
    this.#reason = reason;
    this.tell();
  }

  /** Returns how long silence is normal, ms. */
  get silenceLimit() {
    return Math.max(FLOOR, this.#every * MISSED);
  }

  current() {
    const waited = this.#confirmedAt === null ? null : this.#now() - this.#confirmedAt;
    const silent = (this.#state === "live" || this.#state === "polling") && waited !== null && waited > this.silenceLimit;
    return {
      state: this.frozen ? "frozen" : silent ? "stale" : this.#state,
      age: waited === null ? null : Math.floor(waited / 1000),
      reason: silent && !this.frozen ? "no news" : this.#reason,
    };
  }

  tell() {
    const current = this.current();
    const text = JSON.stringify(current);
    if (text === this.#sent) return;
    this.#sent = text;
    for (const listener of this.#listeners) listener(current);
  }

  close() {
    clearInterval(this.#timer);
  }
}
