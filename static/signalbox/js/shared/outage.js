// The page shown while Redis is away: asks /healthz until Redis answers, then loads a page that was read again. A form is
// never sent again by itself: the page only says that it can be.

import { fullJitter } from "../live/backoff.js";
import { send } from "./fetcher.js";

const LEAST = 1000; // ms between two requests
const KEPT = "signalbox.outage"; // attempts at this address: a page that fails again although Redis answers waits longer
const FORGOTTEN = 120_000; // ms

const panel = document.querySelector("[data-outage]");
const said = panel.querySelector("[data-outage-text]");
let attempt = earlier();
let timer = null;

function earlier() {
  const { at = 0, address = "", attempts = 0 } = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
  return address === location.href && Date.now() - at < FORGOTTEN ? attempts : 0;
}

async function answers() {
  try {
    const response = await send(panel.dataset.outage, { headers: { Accept: "application/json" } });
    const { redis } = await response.json();
    return redis === "ok" || redis === "partial";
  } catch {
    return false; // the site itself does not answer
  }
}

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  if (!(await answers())) return wait();
  if (!("reload" in panel.dataset)) {
    said.textContent = "Redis is back. Nothing was sent again.";
    return;
  }
  said.textContent = "Redis is back. Loading…";
  sessionStorage.setItem(KEPT, JSON.stringify({ at: Date.now(), address: location.href, attempts: attempt + 1 }));
  location.reload();
}

function wait() {
  timer = setTimeout(look, LEAST + fullJitter(attempt));
  attempt += 1;
}

document.addEventListener("visibilitychange", () => document.hidden || look());
wait();
