// The panel of time series. The server renders legends and tables; the lines are drawn here from the same numbers as JSON,
// and again after each measured minute.

import { createPlot } from "./series.js";
import { delay, fetchJson } from "../shared/fetcher.js";
import { isResting } from "../live/indicator.js";
import { refresh } from "../shared/regions.js";

const MINUTE = 60000; // ms
const AFTER = 5000; // ms after a full minute, when a worker has measured it
const SOON = 10000; // ms between two requests while there are few measurements
const FEW = 4; // measurements

const panel = document.querySelector("[data-charts]");
const pictures = new Map();
let last; // ms: the time of the newest measurement that is drawn; undefined before the first answer
let timer;

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  const found = last !== undefined && isResting() ? null : await fetchJson(panel.dataset.charts);
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
    if (!pictures.has(chart.id)) pictures.set(chart.id, await createPlot(place, panel.dataset.zone));
    pictures.get(chart.id)(found, chart);
  }
}

// Reloads the texts around the lines, so that they show the same figures.
async function renew(found, known) {
  const parts = found.charts.flatMap(({ id }) => [`legend-${id}`, `numbers-${id}`]);
  await refresh(["charts-measured", "times-wait", "times-run", ...parts]);
  if (!known) return;
  panel.querySelector(".figures").hidden = false;
  for (const empty of panel.querySelectorAll(":scope > .empty")) empty.remove();
}

if (panel) {
  document.addEventListener("visibilitychange", look);
  look();
}
