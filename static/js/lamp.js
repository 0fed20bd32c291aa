// The lamp in the bar: how fresh the page is, in a word and with a shape.

import { connect } from "./live/socket.js";
import { age } from "./format.js";

const words = {
  live: () => "Live",
  polling: () => "Live, every 3 s",
  stale: (seconds) => `Stale: ${seconds === null ? "no data yet" : `${age(seconds)} old`}`,
  offline: (seconds) => (seconds === null ? "Not live" : `Not live: ${age(seconds)} old`),
};

/** The page's live connection, with the lamp following it. */
export function live() {
  const connection = connect();
  const lamp = document.querySelector("[data-live]");
  const text = lamp?.querySelector("[data-live-text]");
  let wasUp = false;
  connection.onstatus(({ state, age: seconds, reason }) => {
    wasUp ||= state === "live" || state === "polling";
    if (!lamp || (!wasUp && reason !== "signed out")) return; // the time of rendering says more until then
    lamp.dataset.state = state;
    lamp.title = reason ?? "";
    text.textContent = reason === "signed out" ? "Signed out: log in again" : words[state](seconds);
    for (const drawing of document.querySelectorAll(".sb-diagram")) {
      drawing.classList.toggle("stale", state === "stale" || state === "offline");
    }
  });
  return connection;
}
