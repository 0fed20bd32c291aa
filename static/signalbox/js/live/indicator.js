// The live indicator in the top bar: shows by a word and a shape how fresh the page is.

import { connect } from "./client.js";
import { age, figure, moment, timeOfDay } from "../shared/format.js";
import { serverTime } from "../shared/ages.js";

const words = {
  live: () => "Live",
  polling: () => "Live, every 3 s",
  stale: (seconds) => `Stale: ${seconds === null ? "no data yet" : `${age(seconds)} old`}`,
  frozen: () => `Frozen ${timeOfDay(frozenAt)}: ${changes()}`,
  offline: (seconds) => (seconds === null ? "Not live" : `Not live: ${age(seconds)} old`),
};

const KEPT = "signalbox.frozen"; // for this tab only
let frozenAt = 0; // ms of the server: what a frozen page shows is as old as this

function changes() {
  const waiting = connect().store.waiting;
  return waiting ? `${figure(waiting)} new` : "nothing new";
}

/** Whether the tab is hidden or the page frozen: reloads by the clock are skipped. */
export function isResting() {
  return document.hidden || connect().resting;
}

/** Returns the page's live connection and starts the indicator and the button that freezes. */
export function connectPage() {
  const connection = connect();
  const lamp = document.querySelector("[data-live]");
  let wasUp = false;
  let said = "";
  connection.onstatus(({ state, age: seconds, reason }) => {
    wasUp ||= state !== "offline" && state !== "stale";
    if (!lamp || (!wasUp && reason !== "signed out")) return; // until then the time of rendering is shown
    lamp.dataset.state = state;
    lamp.title = reason ?? "";
    if (state === "frozen") lamp.title = `This tab shows ${moment(frozenAt)}`;
    const text = reason === "signed out" ? "Signed out: log in again" : words[state](seconds);
    lamp.querySelector("[data-live-text]").textContent = text;
    if (said !== state) tell(text, said);
    said = state;
    for (const drawing of document.querySelectorAll(".sb-diagram")) {
      drawing.classList.toggle("stale", state === "stale" || state === "offline" || state === "frozen");
    }
  });
  follow(connection, document.querySelector("[data-freeze]"));
  return connection;
}

// Announces changes of state to screen readers, but neither each second nor the first "Live".
function tell(text, before) {
  const place = document.querySelector("[data-live-notice]");
  if (place && before) place.textContent = text;
}

function follow(connection, button) {
  if (!button || !button.hidden) return;
  const show = (frozen) => {
    frozenAt = serverTime();
    connection.freeze(frozen);
    document.documentElement.classList.toggle("frozen", frozen);
    button.setAttribute("aria-pressed", frozen);
    button.textContent = frozen ? "Unfreeze" : "Freeze view";
    button.title = frozen ? "Show what has changed, and go on (p)" : "Keep what this tab shows as it is; nothing else stops (p)";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const frozen = !sessionStorage.getItem(KEPT);
    if (frozen) sessionStorage.setItem(KEPT, "yes");
    else sessionStorage.removeItem(KEPT);
    show(frozen);
  });
  if (sessionStorage.getItem(KEPT)) show(true);
}
