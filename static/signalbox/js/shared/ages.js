// Updates every age on the page each second, by the server's clock, which the page has in <body data-now>.

import { element } from "./dom.js";
import { age, exact, until } from "./format.js";

const offset = Number(document.body.dataset.now || Date.now()) - Date.now(); // ms that the server's clock is ahead of the browser's

/** Returns the server's time, ms. */
export function serverTime() {
  return Date.now() + offset;
}

function words({ dataset }, now) {
  const seconds = (now - Number(dataset.at)) / 1000;
  return dataset.kind === "until" ? until(seconds) : age(seconds);
}

function tick() {
  const now = Date.now() + offset;
  for (const time of document.querySelectorAll("time[data-at]")) {
    const text = words(time, now);
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Returns a <time> with an age that is updated from now on. */
export function timeSince(ms) {
  const about = { className: "tick", "data-at": ms, "data-kind": "ago", title: exact(ms), dateTime: new Date(ms).toISOString() };
  const made = element("time", about);
  made.textContent = words(made, Date.now() + offset);
  return made;
}

// A hidden tab updates nothing.
let ticking = null;
function tickWhileVisible() {
  clearInterval(ticking);
  ticking = document.hidden ? null : setInterval(tick, 1000);
  if (ticking) tick();
}
document.addEventListener("visibilitychange", tickWhileVisible);
tickWhileVisible();
