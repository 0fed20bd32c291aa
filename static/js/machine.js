import { live } from "./lamp.js";
import { timeSince } from "./ages.js";
import { center } from "./diagram.js";
import { figure } from "./format.js";
import { idsOf, readings, Tempo } from "./modes.js";
import { changesIn, countOf, put, putCount, putDepths, putDrawing } from "./paint.js";
import { refill, throttled } from "./regions.js";

const { machine, version } = document.body.dataset;
const TICK = 2000; // ms: ages grow and rates fall while nothing happens
const list = () => document.querySelector("[data-list]");
const again = throttled(() => refill(list(), list().dataset.list), 1000);
const tempo = new Tempo();
let counted = "";
let latest = null;
let seen = 0; // when `latest` came, by our own clock

center();

live().subscribe(`machine:${machine}`, (value, meta) => {
  if (value.gone) return;
  latest = value;
  seen = Date.now();
  follow(value, meta);
  const differs = changesIn(() => paint(value));
  relist(JSON.stringify([value.counts, value.oldest]), differs);
});
setInterval(() => latest && !document.hidden && draw(latest), TICK);
document.addEventListener("redrawn", () => latest && paint(latest));

function follow(value, meta) {
  const ids = [...document.querySelectorAll("[data-transition]")].flatMap(idsOf);
  const own = flowOf(value.flow ?? {});
  const all = Object.values(value.flow ?? {}).reduce((sum, taken) => sum + taken, 0);
  const others = all - Object.values(own).reduce((sum, taken) => sum + taken, 0);
  tempo.add({ ...meta, at: value.now }, [...new Set([...Object.keys(own), ...ids])], own, others);
}

function paint(value) {
  const { counts, oldest, queues } = value;
  put(document.querySelector(".facts [data-total]"), figure(value.total));
  put(document.querySelector(".tabs [data-total]"), figure(value.total));
  put(document.querySelector(".facts [data-timers]"), figure(value.timers));
  for (const place of document.querySelectorAll(".tabs [data-state], tr[data-state]")) {
    putCount(place.querySelector("[data-count]"), countOf(place, counts));
    putOldest(place.querySelector("[data-oldest]"), oldest[place.dataset.state]);
  }
  const own = Object.entries(queues ?? {}).map(([queue, held]) => [`${machine}/${queue}`, held]);
  putDepths(Object.fromEntries(own), document.querySelector("main"));
  draw(value);
  document.querySelector("[data-outdated]").hidden = String(value.version) === version;
}

function draw(value) {
  const { mode, bounds } = document.querySelector("[data-region=modes]").dataset;
  const shown = { ...value, flow: flowOf(value.flow ?? {}), queues: value.queues ?? {} };
  const now = value.now + Date.now() - seen;
  for (const drawing of document.querySelectorAll(".sb-diagram")) {
    putDrawing(drawing, readings(mode, JSON.parse(bounds), { ...shown, now }, { drawing, tempo, now }), shown);
  }
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
  if (moved && !("still" in list().dataset)) again();
  counted = now;
}
