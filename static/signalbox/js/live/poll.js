// Polls the snapshots of topics over HTTP, for a page that has no socket.

import { delay, send } from "../shared/fetcher.js";
import { SIGNED_OUT } from "./socket.js";

const EVERY = 3000; // ms
const EVERY_HIDDEN = 30000; // ms

export class Poller {
  #timer = null;
  #running = false;
  #round = 0; // responses of an earlier round are ignored

  /** `host`: topics(), polled(f), refuse(topic, error), close(reason), outcome("polling" | "stale" | "offline", ms). */
  constructor(host, { api = "/api/v1/live/", fetch } = {}) {
    this.host = host;
    this.api = api;
    this.fetch = fetch;
  }

  get running() {
    return this.#running;
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    this.#poll(++this.#round);
  }

  stop() {
    this.#running = false;
    this.#round += 1;
    clearTimeout(this.#timer);
  }

  /** Asks for one topic at once: the host learns when nobody is signed in any more. */
  check() {
    const [topic] = this.host.topics();
    return topic && this.#ask(topic, this.#round);
  }

  async #poll(round) {
    let outcome = "polling";
    for (const topic of this.host.topics()) {
      const seen = await this.#ask(topic, round);
      if (round !== this.#round) return;
      if (seen !== "polling") outcome = seen;
      if (seen === "offline") break;
    }
    const pause = document.hidden ? EVERY_HIDDEN : EVERY;
    this.host.outcome(outcome, pause);
    this.#timer = setTimeout(() => this.#poll(round), Math.max(pause, delay()));
  }

  async #ask(topic, round) {
    let response;
    let answer;
    try {
      response = await send(`${this.api}?topic=${encodeURIComponent(topic)}`, {
        headers: { Accept: "application/json" },
        fetch: this.fetch,
      });
      answer = await response.json();
    } catch {
      return "offline";
    }
    if (round !== this.#round) return "polling";
    if (response.ok) this.host.polled(answer);
    else if (response.status === 401) this.host.close(SIGNED_OUT);
    else if (response.status >= 500) return "stale";
    else this.host.refuse(topic, answer);
    return "polling";
  }
}
