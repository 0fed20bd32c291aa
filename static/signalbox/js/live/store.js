// Holds the values of subscribed topics. Snapshots replace, deltas merge; a missing number is a gap.

import { merge } from "./merge.js";

const SELDOM = 5000; // ms between two deliveries in a hidden tab, and with `calm`

/** Listeners are called as `listener(value, meta)`; meta is {topic, kind, epoch, seq, at, changed}. */
export class Store {
  #topics = new Map();
  #hidden = false;
  #frozen = false;
  #waiting = 0;
  #calm;
  #late = new Map(); // topic -> meta of the last value that is still to be delivered
  #timer = null;

  /** `calm`: values are delivered every 5 s. */
  constructor({ calm = false } = {}) {
    this.#calm = calm;
  }

  get topics() {
    return [...this.#topics.keys()];
  }

  /** How many changes a frozen page has not shown, since the first value of each topic. */
  get waiting() {
    return this.#waiting;
  }

  /** Whether a snapshot has been requested and values may be out of date. */
  get behind() {
    return [...this.#topics.values()].some((entry) => entry.resyncing);
  }

  value(topic) {
    return this.#topics.get(topic)?.value ?? null;
  }

  /** Adds a listener; returns whether it is the topic's first. A present value is delivered at once. */
  add(topic, listener) {
    const entry = this.#topics.get(topic) ?? { value: null, meta: null, listeners: new Set(), resyncing: false };
    const first = entry.listeners.size === 0;
    entry.listeners.add(listener);
    this.#topics.set(topic, entry);
    if (entry.meta) listener(entry.value, { ...entry.meta, kind: "snapshot", changed: entry.value });
    return first;
  }

  /** Removes a listener; returns whether it was the topic's last. */
  remove(topic, listener) {
    const entry = this.#topics.get(topic);
    if (!entry?.listeners.delete(listener) || entry.listeners.size > 0) return false;
    this.drop(topic);
    return true;
  }

  drop(topic) {
    this.#topics.delete(topic);
    this.#late.delete(topic);
  }

  snapshot(frame) {
    const entry = this.#topics.get(frame.topic);
    if (!entry) return;
    entry.resyncing = false;
    this.#take(entry, frame, frame.data);
  }

  /** Merges a delta. Returns true when there is a gap and a resync has to be requested. */
  delta(frame) {
    const entry = this.#topics.get(frame.topic);
    if (!entry) return false;
    const { meta } = entry;
    if (!meta || meta.epoch !== frame.epoch || frame.seq !== meta.seq + 1) return this.#gap(entry);
    if (!entry.resyncing) this.#take(entry, frame, merge(entry.value, frame.data));
    return false;
  }

  #gap(entry) {
    const ask = !entry.resyncing;
    entry.resyncing = true;
    return ask;
  }

  /** Marks all values as out of date: a new connection brings snapshots. */
  restart() {
    for (const entry of this.#topics.values()) entry.resyncing = true;
  }

  #take(entry, frame, value) {
    const { type: kind, topic, epoch, seq, at } = frame;
    if (this.#frozen && entry.meta && (kind === "delta" || JSON.stringify(entry.value) !== JSON.stringify(value))) this.#waiting += 1;
    entry.value = value;
    entry.meta = { topic, epoch, seq, at };
    this.#deliver(entry, { ...entry.meta, kind, changed: frame.data });
  }

  #deliver(entry, meta) {
    if (this.#hidden || this.#calm || this.#frozen) {
      this.#late.set(meta.topic, meta);
      if (!this.#frozen) this.#timer ??= setTimeout(() => this.#flush(), SELDOM);
      return;
    }
    for (const listener of [...entry.listeners]) call(listener, entry.value, meta);
  }

  /** Keeps values back and counts their changes until the page is no longer frozen; then delivers all that wait. */
  freeze(frozen) {
    this.#frozen = frozen;
    this.#waiting = 0;
    if (!frozen) this.#flush();
  }

  /** Delivers values seldom while the tab is hidden, and all that wait when it is visible again. */
  hide(hidden) {
    this.#hidden = hidden;
    if (!hidden) this.#flush();
  }

  #flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#frozen) return;
    const late = [...this.#late];
    this.#late.clear();
    for (const [topic, meta] of late) {
      const entry = this.#topics.get(topic);
      const whole = { ...meta, kind: "snapshot", changed: entry?.value };
      for (const listener of [...(entry?.listeners ?? [])]) call(listener, entry.value, whole);
    }
  }
}

// A listener that fails does not affect the others.
function call(listener, value, meta) {
  try {
    listener(value, meta);
  } catch (error) {
    reportError(error);
  }
}
