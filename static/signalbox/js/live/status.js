// How fresh the page is: "live", "stale", "offline", "polling" or "paused", and the age of its data in seconds.

const TICK = 1000; // ms
const MISSED = 3; // intervals without a word before data counts as stale
const FLOOR = 6000; // ms; intervals may be shorter than a slow network's hiccups

/** Listeners are called as `listener({state, age, reason})` whenever one of them changes; age is null before any data. */
export class Status {
  #listeners = new Set();
  #now;
  #state = "offline";
  #reason = "";
  #confirmedAt = null;
  #every = 2000;
  #paused = false;
  #told = "";
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
  confirmed(state, every = this.#every) {
    this.#every = every;
    this.#confirmedAt = this.#now();
    this.set(state);
  }

  /** Pauses or resumes. A paused page ages from the last time it was up to date. */
  pause(paused) {
    this.#paused = paused;
    if (paused) this.#confirmedAt ??= this.#now();
    this.tell();
  }

  set(state, reason = "") {
    this.#state = state;
    this.#reason = reason;
    this.tell();
  }

  /** Returns how long silence is normal, ms. */
  get patience() {
    return Math.max(FLOOR, this.#every * MISSED);
  }

  current() {
    const waited = this.#confirmedAt === null ? null : this.#now() - this.#confirmedAt;
    const silent = (this.#state === "live" || this.#state === "polling") && waited !== null && waited > this.patience;
    return {
      state: this.#paused ? "paused" : silent ? "stale" : this.#state,
      age: waited === null ? null : Math.floor(waited / 1000),
      reason: silent && !this.#paused ? "no news" : this.#reason,
    };
  }

  tell() {
    const current = this.current();
    const told = JSON.stringify(current);
    if (told === this.#told) return;
    this.#told = told;
    for (const listener of this.#listeners) listener(current);
  }

  close() {
    clearInterval(this.#timer);
  }
}
