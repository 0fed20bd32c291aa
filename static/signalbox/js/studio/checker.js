// Sends the text to be checked: one request at a time, always with the newest text. An answer about a text that has changed
// since is still shown, moved with the changes; one that comes after a newer one cannot be.

import { send } from "../shared/fetcher.js";

const PAUSE = 15; // ms after a keystroke: those of one paste or one key come together
const SLOW = 120; // ms of processor time of a check with a drawing: then findings come first, and the drawing when nobody types
const IDLE = 400;
const SHARE = 6; // of an author who types on, a slow drawing takes one part in so many
const RETRY = 3000;
const BUSY = 1500; // ms until another try, where the server is still busy with an earlier check
const SILENT = 4; // tries that nothing is said about

export class Checker {
  #address;
  #text;
  #take;
  #failed;
  #timer = null;
  #running = false;
  #asked = false;
  #cost = 0; // ms of the last drawing
  #drawings = 0;
  #drawn = 0; // when
  #seen = "";
  #known = false;

  /** `text()` and `format()` of now; `take(answer)`; `failed(message)`. */
  constructor({ address, text, format, take, failed }) {
    Object.assign(this, { format });
    this.#address = address;
    this.#text = text;
    this.#take = take;
    this.#failed = failed;
    if (text().length > 100_000) this.#cost = 10 * SLOW;
  }

  /** The text has changed. */
  ask(pause = PAUSE) {
    this.#asked = true;
    if (this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#run(), pause);
  }

  /** Returns the answer with the text written in a format, or null after saying why not. */
  write(format) {
    return this.#insist({ write: format, draw: "0" });
  }

  /** Returns the answer with a change that is made in the diagram, or null after saying why not. */
  change(change) {
    return this.#insist({ draw: "1", seen: this.#seen }, change);
  }

  async #insist(terms, change) {
    while (this.#running) await new Promise((resolve) => setTimeout(resolve, 20));
    let answer = await this.#exchange(terms, change);
    while (!answer && this.#retry === BUSY) {
      await new Promise((resolve) => setTimeout(resolve, BUSY));
      answer = await this.#exchange(terms, change);
    }
    return answer;
  }

  async #run() {
    this.#asked = false;
    const due = this.#cost <= SLOW || performance.now() - this.#drawn > SHARE * this.#cost;
    const answer = await this.#exchange({ draw: due ? "1" : "0", seen: this.#seen });
    if (this.#asked) this.ask(answer ? 0 : this.#retry || RETRY);
    else if (answer && !due) this.#timer = setTimeout(() => this.#draw(), IDLE);
    else if (!answer && this.#retry) this.ask(this.#retry);
  }

  async #draw() {
    await this.#exchange({ draw: "1", seen: this.#seen });
    if (this.#asked) this.ask(0);
  }

  // The first drawing of a helper process says nothing about the next: it starts the layout.
  #weigh({ svg, cpu }) {
    if (!svg) return;
    this.#drawings += 1;
    if (this.#drawings > 1 || cpu < this.#cost) this.#cost = cpu;
    this.#drawn = performance.now();
  }

  #retry = 0;
  #busy = 0; // answers in a row that the server is busy

  async #exchange(terms, change = null) {
    this.#running = true;
    this.#retry = 0;
    const text = this.#text();
    try {
      const query = new URLSearchParams({ format: this.format(), ...terms, ...(this.#known ? {} : { known: "1" }) });
      const body = change ? JSON.stringify({ text, change }) : text;
      const sent = change ? { ...headers(), "Content-Type": "application/json" } : headers();
      const response = await send(`${this.#address}?${query}`, { method: "POST", headers: sent, body });
      const answer = await response.json().catch(() => null);
      if (response.ok && answer) {
        this.#known = true;
        this.#busy = 0;
        if (answer.drawing) this.#seen = answer.drawing;
        this.#weigh(answer);
        this.#take(answer);
        return answer;
      }
      this.#retry = response.status === 429 && this.#busy < SILENT ? BUSY : response.status === 429 || response.status >= 500 ? RETRY : 0;
      this.#busy = this.#retry === BUSY ? this.#busy + 1 : 0;
      if (this.#busy) return null;
      this.#failed(answer?.error ?? `The server answered ${response.status}.`, answer?.code);
    } catch (error) {
      this.#busy = error.name === "TimeoutError" ? this.#busy + 1 : 0;
      this.#retry = this.#busy && this.#busy <= SILENT ? BUSY : RETRY;
      if (this.#retry === BUSY) return null;
      this.#failed("The server cannot be reached: findings and diagram are those of before.", "away");
    } finally {
      this.#running = false;
    }
    return null;
  }
}

/** Headers of every request of the Studio. */
export function headers() {
  const token = document.querySelector("[data-studio] [name=csrfmiddlewaretoken]").value;
  return { "Content-Type": "text/plain; charset=utf-8", "X-CSRFToken": token, Accept: "application/json" };
}
