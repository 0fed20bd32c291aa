// Opens the websocket, closes it when it falls silent, and reconnects with growing delays.

import { fullJitter } from "./backoff.js";

const OPEN_WITHIN = 10000; // ms
export const SIGNED_OUT = "signed out";
const FINAL = { 4401: SIGNED_OUT, 4403: "another site" }; // close codes after which it does not reconnect
const SLOWLY = new Set([4413, 4429]); // too many frames or sockets: it reconnects later

export class Connection {
  #host;
  #socket = null;
  #attempt = 0;
  #timer = null;
  #watchdog = null;

  /** `host`: opened(), frame(f), lost(), close(reason), and `silenceLimit`, how long silence is normal, ms. */
  constructor(host, url, Socket) {
    this.#host = host;
    this.url = url;
    this.Socket = Socket;
  }

  /** Returns the number of failed attempts in a row; 0 while there is a socket, no end of them where there can be none. */
  get failures() {
    if (!this.url) return Infinity;
    return this.#socket ? 0 : this.#attempt;
  }

  open() {
    if (!this.url) return this.#host.lost(); // the server takes no sockets
    const socket = new this.Socket(this.url);
    this.#socket = socket;
    this.#watch(OPEN_WITHIN);
    socket.onopen = () => this.#host.opened();
    socket.onmessage = ({ data }) => {
      this.#watch(this.#host.silenceLimit);
      this.#host.frame(JSON.parse(data));
    };
    socket.onclose = ({ code }) => this.#lost(socket, code);
  }

  send(frame) {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(frame));
  }

  /** Resets the delay: the server has answered. */
  proven() {
    this.#attempt = 0;
  }

  /** Closes the socket for good. */
  close() {
    this.#attempt = 0;
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  // A half-open connection never closes by itself: close it after too long a silence.
  #watch(silenceLimit) {
    clearTimeout(this.#watchdog);
    const socket = this.#socket;
    this.#watchdog = setTimeout(() => {
      this.#lost(socket, 0);
      socket.close();
    }, silenceLimit);
  }

  #lost(socket, code) {
    if (socket !== this.#socket) return;
    clearTimeout(this.#watchdog);
    this.#socket = null;
    if (FINAL[code]) return this.#host.close(FINAL[code]);
    this.#attempt += SLOWLY.has(code) ? 6 : 1;
    this.#host.lost();
    this.#timer = setTimeout(() => this.open(), fullJitter(this.#attempt));
  }
}
