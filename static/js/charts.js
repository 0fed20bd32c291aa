// Charts over time. The page brings legends and tables; the lines are drawn here from the same numbers as JSON, and again
// when a new minute was measured.

import { drawn } from "./chart.js";
import { delay, fetchJson } from "./fetcher.js";
import { resting } from "./lamp.js";
import { refresh } from "./regions.js";

const MINUTE = 60000; // ms
const AFTER = 5000; // ms after the full minute: by then a worker has measured it
const SOON = 10000; // ms between two looks while nothing was measured, or little
const FEW = 4; // steps that were measured

const panel = document.querySelector("[data-charts]");
const pictures = new Map();
let last = 0; // ms: the newest measurement that is drawn
let timer;

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  const found = last && resting() ? null : await fetchJson(panel.dataset.charts);
  if (found && found.measured !== last) await show(found);
  clearTimeout(timer);
  timer = setTimeout(look, Math.max(found ? pause(found) : SOON, delay()));
}

function pause(found) {
  const known = Math.max(...found.charts.flatMap(({ lines }) => lines.map(({ values }) => values.filter((value) => value !== null).length)));
  if (known < FEW) return SOON;
  return MINUTE - (Date.now() % MINUTE) + AFTER;
}

async function show(found) {
  const known = found.charts.some(({ lines }) => lines.some(({ values }) => values.some((value) => value !== null)));
  if (last || (known && panel.querySelector(".figures").hidden)) await renew(found, known);
  last = found.measured;
  if (!known) return;
  for (const chart of found.charts) {
    const place = panel.querySelector(`[data-chart="${chart.id}"]`);
    if (!place) continue;
    if (!pictures.has(chart.id)) pictures.set(chart.id, await drawn(place, panel.dataset.zone));
    pictures.get(chart.id)(found, chart);
  }
}

// The words around the lines come from the server, so that nobody reads two different figures.
async function renew(found, known) {
  const parts = found.charts.flatMap(({ id }) => [`legend-${id}`, `numbers-${id}`]);
  await refresh(["charts-measured", "times-wait", "times-run", "boards", ...parts]);
  if (!known) return;
  panel.querySelector(".figures").hidden = false;
  for (const empty of panel.querySelectorAll(":scope > .empty")) empty.remove();
}

if (panel) {
  document.addEventListener("visibilitychange", look);
  look();
}
