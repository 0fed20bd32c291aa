// The live indicator in the top bar: shows by a word and a shape how fresh the page is.

import { connect } from "./client.js";
import { age } from "../shared/format.js";

const words = {
  live: () => "Live",
  polling: () => "Live, every 3 s",
  stale: (seconds) => `Stale: ${seconds === null ? "no data yet" : `${age(seconds)} old`}`,
  paused: (seconds) => `Paused: ${age(seconds ?? 0)} old`,
  offline: (seconds) => (seconds === null ? "Not live" : `Not live: ${age(seconds)} old`),
};

const KEPT = "signalbox.paused"; // for this tab only

/** Whether the tab is hidden or the page paused: reloads by the clock are skipped. */
export function isResting() {
  return document.hidden || connect().resting;
}

/** Returns the page's live connection and starts the indicator and the pause button. */
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
    const text = reason === "signed out" ? "Signed out: log in again" : words[state](seconds);
    lamp.querySelector("[data-live-text]").textContent = text;
    if (said !== state) tell(text, said);
    said = state;
    for (const drawing of document.querySelectorAll(".sb-diagram")) {
      drawing.classList.toggle("stale", state === "stale" || state === "offline" || state === "paused");
    }
  });
  follow(connection, document.querySelector("[data-pause]"));
  return connection;
}

// Announces changes of state to screen readers, but neither each second nor the first "Live".
function tell(text, before) {
  const place = document.querySelector("[data-live-said]");
  if (place && before) place.textContent = text;
}

function follow(connection, button) {
  if (!button || !button.hidden) return;
  const show = (paused) => {
    connection.pause(paused);
    button.textContent = paused ? "Resume updates" : "Pause updates";
    button.title = paused ? "Live updates are paused in this tab (p)" : "Pause live updates in this tab (p)";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const paused = !sessionStorage.getItem(KEPT);
    if (paused) sessionStorage.setItem(KEPT, "yes");
    else sessionStorage.removeItem(KEPT);
    show(paused);
  });
  show(Boolean(sessionStorage.getItem(KEPT)));
}
