// Updates every age on the page each second, by the server's clock, which the page has in <body data-now>.

import { age, exact, until } from "./format.js";

const offset = Number(document.body.dataset.now || Date.now()) - Date.now(); // ms that the server's clock is ahead of the browser's

/** Returns the server's time, ms. */
export function serverTime() {
  return Date.now() + offset;
}

function words(element, now) {
  const seconds = (now - Number(element.dataset.at)) / 1000;
  return element.dataset.kind === "until" ? until(seconds) : age(seconds);
}

function tick() {
  const now = Date.now() + offset;
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = words(element, now);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Returns a <time> with an age that is updated from now on. */
export function timeSince(ms) {
  const element = document.createElement("time");
  element.className = "tick";
  element.dataset.at = ms;
  element.dataset.kind = "ago";
  element.title = exact(ms);
  element.dateTime = new Date(ms).toISOString();
  element.textContent = words(element, Date.now() + offset);
  return element;
}

// A hidden tab updates nothing.
let ticking = null;
function seen() {
  clearInterval(ticking);
  ticking = document.hidden ? null : setInterval(tick, 1000);
  if (ticking) tick();
}
document.addEventListener("visibilitychange", seen);
seen();
