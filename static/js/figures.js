// The figures of queues, wherever an element says with data-queue whose they are: depths, ages, rates.

import { timeSince } from "./ages.js";
import { figure, perSecond } from "./format.js";
import { putDepths } from "./paint.js";
import { Counters } from "./rates.js";

const TICK = 1000; // ms

/** Follows the queues that `connection` tells of: `show({route: value}, meta)` paints them. */
export class QueueFigures {
  #counters = new Map();
  #ahead = 0; // ms the server's clock is ahead of ours
  #fresh = false;

  constructor(connection) {
    connection.onstatus(({ state }) => {
      this.#fresh = state === "live" || state === "polling";
      this.#tick();
    });
    setInterval(() => this.#tick(), TICK);
  }

  show(queues, { at, epoch }) {
    this.#ahead = at - Date.now();
    for (const [route, value] of Object.entries(queues)) {
      if (!this.#counters.has(route)) this.#counters.set(route, new Counters());
      this.#counters.get(route).add(at, { in: value.enqueued, out: ended(value) }, epoch);
    }
    putDepths(queues);
    for (const element of document.querySelectorAll("[data-queue]")) {
      const value = queues[element.dataset.queue];
      if (value) putFigures(element, value);
    }
    this.#tick();
  }

  // Nothing new is news, too: rates fall while nothing happens. While nobody knows, none is told.
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

function ended({ completed, withdrawn, purged }) {
  return completed + withdrawn + purged;
}

function putFigures(element, value) {
  const totals = { ...value, ended: ended(value) };
  for (const place of element.querySelectorAll("[data-total]")) {
    place.textContent = figure(totals[place.dataset.total] ?? 0);
  }
  const oldest = element.querySelector("[data-oldest]");
  if (!oldest) return;
  if (!value.oldest) oldest.textContent = "–";
  else if (oldest.firstElementChild?.dataset.at !== String(value.oldest)) oldest.replaceChildren(timeSince(value.oldest));
}
