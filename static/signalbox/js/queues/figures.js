// Figures of queues (depths, ages, rates) in every element with data-queue.

import { timeSince } from "../shared/ages.js";
import { figure, perSecond } from "../shared/format.js";
import { putDepths } from "../shared/dom.js";
import { Counters } from "../shared/rates.js";

const TICK = 1000; // ms

/** Shows figures of queues: `show({route: value}, meta)`. Rates are shown while `connection` is live. */
export class QueueFigures {
  #counters = new Map();
  #ahead = 0; // ms that the server's clock is ahead of the browser's
  #fresh = false;
  #queues = {};

  constructor(connection) {
    connection.onstatus(({ state }) => {
      this.#fresh = state === "live" || state === "polling";
      this.#tick();
    });
    setInterval(() => this.#tick(), TICK);
    document.addEventListener("refreshed", () => this.#draw());
  }

  show(queues, { at, epoch }) {
    this.#ahead = at - Date.now();
    for (const [route, value] of Object.entries(queues)) {
      if (!this.#counters.has(route)) this.#counters.set(route, new Counters());
      this.#counters.get(route).add(at, { in: value.enqueued, out: countEnded(value) }, epoch);
    }
    this.#queues = queues;
    this.#draw();
  }

  #draw() {
    putDepths(this.#queues);
    for (const element of document.querySelectorAll("[data-queue]")) {
      const value = this.#queues[element.dataset.queue];
      if (value) putFigures(element, value);
    }
    this.#tick();
  }

  // Rates fall while nothing happens, and are hidden while the connection is not live.
  #tick() {
    if (document.hidden) return;
    const now = Date.now() + this.#ahead;
    for (const element of document.querySelectorAll("[data-queue]")) {
      const counters = this.#counters.get(element.dataset.queue);
      for (const place of element.querySelectorAll("[data-rate]")) {
        const rate = this.#fresh && counters ? counters.rate(place.dataset.rate, now) : null;
        const text = rate === null ? "" : perSecond(rate);
        if (place.textContent !== text) place.textContent = text;
      }
    }
  }
}

function countEnded({ completed, withdrawn, purged }) {
  return completed + withdrawn + purged;
}

function putFigures(element, value) {
  const totals = { ...value, ended: countEnded(value) };
  for (const place of element.querySelectorAll("[data-total]")) {
    place.textContent = figure(totals[place.dataset.total] ?? 0);
  }
  const oldest = element.querySelector("[data-oldest]");
  if (!oldest) return;
  if (!value.oldest) oldest.textContent = "–";
  else if (oldest.firstElementChild?.dataset.at !== String(value.oldest)) oldest.replaceChildren(timeSince(value.oldest));
}
