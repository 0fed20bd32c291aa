// The page's one connection to the live view: subscribes, reconnects, resyncs, and polls when there is no socket.
//
//   const live = connect();
//   const stop = live.subscribe("machine:activation", (value, meta) => paint(value));
//   live.onstatus(({ state, age, reason }) => mark(state, age));
//   live.onerror((error) => say(error.code, error.message, error.topic));

import { fullJitter } from "./backoff.js";
import { Poller } from "./poll.js";
import { Status } from "./status.js";
import { Store } from "./store.js";

const POLL_AFTER = 2; // failed attempts in a row before the page polls; it goes on trying for a socket
const OPEN_WITHIN = 10000; // ms
const SIGNED_OUT = 4401;
const FINAL = { [SIGNED_OUT]: "signed out", 4403: "another site" }; // closes that trying again cannot mend
const ABUSE = 4413;

// One handler for each kind of frame the server sends.
const handlers = {
  snapshot: (live, frame) => live.store.snapshot(frame),
  delta: (live, frame) => live.store.delta(frame) && live.send("resync", frame.topic),
  status: (live, frame) => live.heard(frame),
  error: (live, frame) => live.refused(frame.topic, frame),
};
const LOST = new Set(["SB602", "SB603", "SB604"]); // errors after which a topic is not watched

export class Live {
  #socket = null;
  #attempt = 0;
  #timer = null;
  #watchdog = null;
  #ended = false;
  #errors = new Set();

  constructor({ url, api, fetch, Socket = WebSocket } = {}) {
    this.url = url;
    this.Socket = Socket;
    this.store = new Store();
    this.status = new Status();
    this.poller = new Poller(this, { api, fetch });
    this.#seen();
    document.addEventListener("visibilitychange", () => this.#seen());
    this.#open();
  }

  subscribe(topic, listener) {
    if (this.store.add(topic, listener)) this.send("subscribe", topic);
    return () => this.store.remove(topic, listener) && this.send("unsubscribe", topic);
  }

  onstatus(listener) {
    return this.status.on(listener);
  }

  onerror(listener) {
    this.#errors.add(listener);
    return () => this.#errors.delete(listener);
  }

  close(reason = "closed") {
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    this.poller.stop();
    this.#socket?.close();
    this.#socket = null;
    this.status.set("offline", reason);
    this.status.close();
  }

  send(type, topic) {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify({ type, topic }));
  }

  heard(frame) {
    this.#attempt = 0;
    this.poller.stop();
    if (frame.state === "live") this.status.confirmed("live", frame.every);
    else this.status.set("stale", "Redis does not answer");
  }

  refused(topic, error) {
    if (topic && LOST.has(error.code)) this.store.drop(topic);
    for (const listener of this.#errors) listener(error);
  }

  #open() {
    const socket = new this.Socket(this.url);
    this.#socket = socket;
    this.#watch(OPEN_WITHIN);
    socket.onopen = () => {
      this.store.restart();
      for (const topic of this.store.topics) this.send("subscribe", topic);
    };
    socket.onmessage = ({ data }) => {
      this.#watch(this.status.patience);
      const frame = JSON.parse(data);
      handlers[frame.type]?.(this, frame);
    };
    socket.onclose = ({ code }) => this.#lost(socket, code);
  }

  // A half-open connection never closes by itself: silence for too long ends it here.
  #watch(patience) {
    clearTimeout(this.#watchdog);
    const socket = this.#socket;
    this.#watchdog = setTimeout(() => {
      this.#lost(socket, 0);
      socket.close();
    }, patience);
  }

  #lost(socket, code) {
    if (this.#ended || socket !== this.#socket) return;
    clearTimeout(this.#watchdog);
    this.#socket = null;
    if (FINAL[code]) return this.close(FINAL[code]);
    this.#attempt += code === ABUSE ? 6 : 1;
    if (this.#attempt >= POLL_AFTER) this.poller.start();
    if (!this.poller.running) this.status.set("offline", "reconnecting");
    this.#timer = setTimeout(() => this.#open(), fullJitter(this.#attempt));
  }

  #seen() {
    this.store.hide(document.hidden);
    this.status.tell();
  }

  // What the poller asks of and tells its host.
  topics = () => this.store.topics;
  hidden = () => document.hidden;
  frame = (frame) => this.store.snapshot(frame);
  signedOut = () => this.close(FINAL[SIGNED_OUT]);
  outcome = (outcome, every) => {
    if (outcome === "polling") this.status.confirmed("polling", every);
    else this.status.set(outcome, outcome === "stale" ? "Redis does not answer" : "no connection");
  };
}

let shared = null;

/** The page's connection; every caller gets the same one. */
export function connect() {
  const url = new URL(document.body.dataset.liveUrl ?? "/ws/live/", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  shared ??= new Live({ url: url.href });
  return shared;
}
