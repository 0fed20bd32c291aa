// Every request that scripts make goes through here: who asks, how long an answer may take, what counts as one, how often
// the same is asked, and how long to leave a server alone that does not answer.

import { fullJitter } from "./live/backoff.js";

const LIMIT = 10_000; // ms: an answer that never comes must not keep the next one away
const PAUSE = 2000; // ms between two requests for the same, however fast things move
const MOST = 60_000; // ms: no longer than this a server is left alone because it says so

const leaving = new AbortController(); // ends what is under way when the page goes
let failures = 0; // requests in a row that a server did not answer, or not now
let rested = -Infinity; // performance.now() until which it is left alone

addEventListener("pagehide", ({ persisted }) => persisted || leaving.abort());

/** Send one request; the Response, whatever its status. Throws where none comes. `limit`: ms; `signal`: ends it early. */
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

/** How long to wait before the next request, ms: growing while the server does not answer, 0 while it does. */
export function delay() {
  return failures ? Math.max(0, rested - performance.now()) : 0;
}

function rest(seconds) {
  const told = Math.min(MOST, (Number(seconds) || 0) * 1000);
  rested = performance.now() + Math.max(told, fullJitter(failures));
  failures += 1;
}

/** The JSON at `url`; null where there is none for us now. */
export async function fetchJson(url, options) {
  return read(url, "application/json", (response) => response.json(), options);
}

/** The text of the page at `url`; null where there is none for us now. */
export async function fetchText(url, options) {
  return read(url, "text/html", (response) => response.text(), options);
}

async function read(url, kind, body, options) {
  try {
    const response = await send(url, { headers: { Accept: kind }, ...options });
    if (!response.ok || response.redirected) return null; // signed out, or not there any more: the lamp tells
    return await body(response);
  } catch {
    return null; // the next change asks again
  }
}

/** `action(signal)` at once, then at most every `pause` ms however often it is asked for. Asked while it runs: once more.
 *  `seen`: in a tab that nobody sees it waits until somebody does. `.again()` ends the run under way, whose answer is for
 *  something else, and asks. */
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

/** A function to call when something moved: it asks `address()`, if that gives one, and `take` gets the JSON. */
export function follow(address, take, pause = PAUSE) {
  return throttle(async (signal) => {
    const url = address();
    const found = url && (await fetchJson(url, { signal }));
    if (found) take(found);
  }, pause, { seen: true });
}
