import { live } from "./lamp.js";
import { timeSince } from "./ages.js";
import { center } from "./diagram.js";
import { figure } from "./format.js";
import { changesIn, countOf, put, putCount, putDepths, putDrawing } from "./paint.js";
import { refill, throttled } from "./regions.js";

const { machine, version } = document.body.dataset;
const list = document.querySelector("[data-list]");
const again = throttled(() => refill(list, list.dataset.list), 1000);
let counted = "";

center();

live().subscribe(`machine:${machine}`, (value) => {
  if (value.gone) return;
  const differs = changesIn(() => paint(value));
  relist(JSON.stringify([value.counts, value.oldest]), differs);
});

function paint(value) {
  const { counts, oldest, flow, queues } = value;
  put(document.querySelector(".facts [data-total]"), figure(value.total));
  put(document.querySelector(".tabs [data-total]"), figure(value.total));
  put(document.querySelector(".facts [data-timers]"), figure(value.timers));
  for (const place of document.querySelectorAll(".tabs [data-state], tr[data-state]")) {
    putCount(place.querySelector("[data-count]"), countOf(place, counts));
    putOldest(place.querySelector("[data-oldest]"), oldest[place.dataset.state]);
  }
  const own = Object.entries(queues ?? {}).map(([queue, held]) => [`${machine}/${queue}`, held]);
  putDepths(Object.fromEntries(own), document.querySelector("main"));
  for (const drawing of document.querySelectorAll(".sb-diagram")) {
    putDrawing(drawing, { counts, flow: flowOf(flow ?? {}), queues: queues ?? {} });
  }
  document.querySelector("[data-outdated]").hidden = String(value.version) === version;
}

// The engine counts per version: "3:t2". The drawing is of one.
function flowOf(flow) {
  const own = Object.entries(flow).filter(([key]) => key.startsWith(`${version}:`));
  return Object.fromEntries(own.map(([key, taken]) => [key.slice(version.length + 1), taken]));
}

function putOldest(cell, entered) {
  if (!cell) return;
  if (!entered) return cell.replaceChildren("–");
  if (cell.firstElementChild?.dataset.at !== String(entered)) cell.replaceChildren(timeSince(entered));
}

// Only the first page follows: further ones stay put, so that nobody loses their place.
function relist(now, differs) {
  const moved = counted ? counted !== now : differs;
  if (moved && !("still" in list.dataset)) again();
  counted = now;
}
