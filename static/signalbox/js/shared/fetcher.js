// Sends every request of the page's scripts. It sets the time limit, decides what counts as an answer, limits how often the
// same is requested, and waits longer after each failure.

import { fullJitter } from "../live/backoff.js";

const LIMIT = 10_000; // ms: a response that never arrives must not block the next request
const PAUSE = 2000; // ms between two requests for the same
const MOST = 60_000; // ms: the longest Retry-After that is obeyed
const REFUSALS = new Set([401, 403]);

const leaving = new AbortController(); // aborts all requests when the page is left
let failures = 0; // requests in a row that failed
let rested = -Infinity; // performance.now() before which nothing is sent

addEventListener("pagehide", ({ persisted }) => persisted || leaving.abort());

/** Sends one request and returns its Response, whatever the status. Throws if none arrives. `limit`: ms; `signal` aborts it. */
export async function send(url, { limit = LIMIT, signal, fetch = globalThis.fetch, ...options } = {}) {
  const ends = [AbortSignal.timeout(limit), leaving.signal, signal].filter(Boolean);
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options, signal: AbortSignal.any(ends) });
  } catch (error) {
    if (!signal?.aborted && !leaving.signal.aborted) rest();
    throw error;
  }
  if (response.status >= 500 || response.status === 429) rest(response.headers?.get("Retry-After"));
  else failures = 0;
  return response;
}

/** Sends a request that outlives the page, when it is left; nobody hears of an answer. */
export function sendLast(url, options) {
  fetch(url, { credentials: "same-origin", keepalive: true, ...options }).catch(() => {});
}

/** Returns how long to wait before the next request, ms: 0 unless requests fail; it grows with each failure. */
export function delay() {
  return failures ? Math.max(0, rested - performance.now()) : 0;
}

function rest(seconds) {
  const asked = Math.min(MOST, (Number(seconds) || 0) * 1000);
  rested = performance.now() + Math.max(asked, fullJitter(failures));
  failures += 1;
}

/** Returns the JSON at `url`; null after an error, a redirect or a status other than 2xx. The event "refused" tells of an answer
 *  that comes when a session or a right has ended. */
export async function fetchJson(url, options) {
  return read(url, "application/json", (response) => response.json(), options);
}

/** Returns the text of the page at `url`; null after an error, a redirect or a status other than 2xx. */
export async function fetchText(url, options) {
  return read(url, "text/html", (response) => response.text(), options);
}

async function read(url, kind, body, options) {
  try {
    const response = await send(url, { headers: { Accept: kind }, ...options });
    if (response.redirected || REFUSALS.has(response.status)) document.dispatchEvent(new Event("refused"));
    return response.ok && !response.redirected ? await body(response) : null;
  } catch {
    return null; // the next change sends another request
  }
}

/** Returns a function that runs `action(signal)` at once, then at most every `pause` ms however often it is called. Called
 *  during a run, it runs once more. `seen`: a hidden tab runs nothing until it is visible. `.again()` also aborts the run in
 *  progress, whose result is no longer wanted. */
export function throttle(action, pause = PAUSE, { seen = false } = {}) {
  let last = -Infinity;
  let waiting = false;
  let asked = false;
  let running = null;
  async function run() {
    if (seen && document.hidden) {
      waiting = false;
      return;
    }
    asked = false;
    running = new AbortController();
    try {
      await action(running.signal);
    } finally {
      running = null;
      last = performance.now();
      waiting = false;
      if (asked) ask();
    }
  }
  function ask() {
    asked = true;
    if (waiting) return;
    waiting = true;
    setTimeout(run, Math.max(0, last + pause - performance.now(), delay()));
  }
  ask.again = () => {
    running?.abort();
    ask();
  };
  if (seen) document.addEventListener("visibilitychange", () => !document.hidden && asked && ask());
  return ask;
}
