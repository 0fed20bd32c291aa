// The lamp in the bar: how fresh the page is, in a word and with a shape.

import { connect } from "./live/socket.js";
import { age } from "./format.js";

const words = {
  live: () => "Live",
  polling: () => "Live, every 3 s",
  stale: (seconds) => `Stale: ${seconds === null ? "no data yet" : `${age(seconds)} old`}`,
  paused: (seconds) => `Paused: ${age(seconds ?? 0)} old`,
  offline: (seconds) => (seconds === null ? "Not live" : `Not live: ${age(seconds)} old`),
};

const KEPT = "signalbox.paused"; // in this tab alone

/** Nobody looks, or somebody wants the page to stay as it is: what renews itself by the clock waits. */
export function resting() {
  return document.hidden || connect().resting;
}

/** The page's live connection, with the lamp and the button beside it following. */
export function live() {
  const connection = connect();
  const lamp = document.querySelector("[data-live]");
  let wasUp = false;
  let said = "";
  connection.onstatus(({ state, age: seconds, reason }) => {
    wasUp ||= state !== "offline" && state !== "stale";
    if (!lamp || (!wasUp && reason !== "signed out")) return; // the time of rendering says more until then
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

// Who hears the page hears of a change of state, not of every second. That it is live at the start goes without saying.
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
