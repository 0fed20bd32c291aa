// The page's connection to the live view. It subscribes, resyncs, and polls when there is no socket:
//   const stop = connect().subscribe("machine:activation", (value, meta) => show(value));
// A tab that has been hidden for a while requests nothing, then gets one snapshot of each topic. A frozen page counts changes
// and shows them once it is unfrozen.

import { forgetMissing, hearAll } from "./missing.js";
import { Connection } from "./socket.js";
import { Poller } from "./poll.js";
import { Rest } from "./rest.js";
import { Status } from "./status.js";
import { Store } from "./store.js";

const POLL_AFTER = 2; // failed attempts in a row before the page polls; it still tries to open a socket

// One handler for each kind of frame from the server.
const handlers = {
  snapshot: (live, frame) => live.rest.resting || live.takeFrame(frame),
  delta: (live, frame) => live.rest.resting || (live.store.delta(frame) && live.send("resync", frame.topic)),
  status: (live, frame) => live.takeStatus(frame),
  error: (live, frame) => live.refuse(frame.topic, frame),
};
const LOST = new Set(["SB602", "SB603", "SB604"]); // errors that end the subscription of a topic

export class Live {
  #up = false; // the last status said that the server reads Redis
  #closed = false;

  constructor({ url, api, fetch, Socket = WebSocket, calm = false } = {}) {
    this.store = new Store({ calm });
    this.status = new Status();
    this.poller = new Poller(this, { api, fetch });
    this.connection = new Connection(this, url, Socket);
    this.rest = new Rest(this);
    this.rest.look();
    this.connection.open();
  }

  subscribe(topic, listener) {
    const heard = hearAll(topic, listener);
    if (this.store.add(topic, heard) && !this.rest.resting) this.send("subscribe", topic);
    return () => {
      forgetMissing(topic);
      return this.store.remove(topic, heard) && this.send("unsubscribe", topic);
    };
  }

  onstatus(listener) {
    return this.status.on(listener);
  }

  /** Whether the page shows no changes: its tab is hidden, or it is frozen, or the connection is closed. */
  get resting() {
    return this.rest.resting || this.status.frozen || this.#closed;
  }

  /** Freezes or unfreezes what the page shows. */
  freeze(frozen) {
    this.store.freeze(frozen);
    this.status.freeze(frozen);
    if (!frozen && this.#up && !this.store.behind) this.status.confirm("live");
  }

  close(reason = "closed") {
    this.#closed = true;
    this.poller.stop();
    this.connection.close();
    this.status.set("offline", reason);
    this.status.close();
  }

  send(type, topic) {
    this.connection.send({ type, topic });
  }

  takeStatus(frame) {
    this.connection.proven();
    this.#up = frame.state === "live";
    this.poller.stop();
    if (!this.#up) this.status.set("stale", "Redis does not answer");
    else if (!this.rest.resting && !this.store.behind) this.status.confirm("live", frame.every);
  }

  takeFrame(frame) {
    const behind = this.store.behind;
    this.store.snapshot(frame);
    if (behind && this.#up && !this.store.behind) this.status.confirm("live");
  }

  refuse(topic, error) {
    if (topic && LOST.has(error.code)) this.store.drop(topic);
  }

  #all(type) {
    for (const topic of this.store.topics) this.send(type, topic);
  }

  #pollWhereNeeded() {
    if (this.connection.failures >= POLL_AFTER && !this.rest.resting && !this.#closed) this.poller.start();
  }

  // Called by the connection.
  get silenceLimit() {
    return this.status.silenceLimit;
  }
  frame = (frame) => handlers[frame.type]?.(this, frame);
  opened = () => {
    this.store.restart();
    if (!this.rest.resting) this.#all("subscribe");
  };
  lost = () => {
    this.#pollWhereNeeded();
    if (!this.poller.running) this.status.set("offline", "reconnecting");
  };

  // Called by `Rest`.
  seen = (hidden) => {
    this.store.hide(hidden);
    this.status.tell();
  };
  rested = (resting) => {
    if (resting) this.poller.stop();
    else this.store.restart();
    this.#pollWhereNeeded();
    this.#all(resting ? "unsubscribe" : "subscribe");
  };

  // Called by the poller.
  topics = () => this.store.topics;
  polled = (frame) => this.store.snapshot(frame);
  outcome = (outcome, every) => {
    if (outcome === "polling") this.status.confirm("polling", every);
    else this.status.set(outcome, outcome === "stale" ? "Redis does not answer" : "no connection");
  };
}

let shared = null;

/** Returns the page's connection, the same one for every caller. */
export function connect() {
  const { liveUrl, mount = "/" } = document.body.dataset;
  const url = liveUrl && new URL(liveUrl, location.href).href.replace(/^http/, "ws");
  if (!shared) {
    shared = new Live({ url, api: `${mount}api/v1/live/`, calm: "calm" in document.body.dataset });
    document.addEventListener("refused", () => shared.poller.check());
  }
  return shared;
}
