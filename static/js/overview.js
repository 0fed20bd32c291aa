import { throttle } from "./fetcher.js";
import { figure } from "./format.js";
import { live, resting } from "./lamp.js";
import { changesIn, countOf, put, putCount, putDepths } from "./paint.js";
import { refresh } from "./regions.js";

const REGIONS = ["alarms", "tracks", "depths", "workers", "active"];
const NOTE = ["note", "no-note"]; // it has another place while it says something
const again = throttle(() => refresh(isWritten() ? REGIONS : [...REGIONS, ...NOTE]), 2000);
let known = "";

live().subscribe("overview", (value) => {
  const differs = changesIn(() => paint(value));
  renew(value, differs);
});

// What no event tells: a pause that lasts, a note of somebody else.
setInterval(() => resting() || again(), 60000);

function paint({ machines, workers }) {
  const queues = {};
  let total = 0;
  for (const [name, machine] of Object.entries(machines)) {
    total += machine.total;
    paintMachine(name, machine);
    for (const [queue, held] of Object.entries(machine.queues ?? {})) queues[`${name}/${queue}`] = held;
  }
  putDepths(queues);
  const sums = { total, workers, ready: sum(queues, "ready"), dead: sum(queues, "dead") };
  for (const element of document.querySelectorAll("[data-sum]")) {
    put(element, figure(sums[element.dataset.sum]));
    if (element.dataset.sum === "dead") element.classList.toggle("bad", sums.dead > 0);
  }
}

function paintMachine(name, { counts, total }) {
  const panel = [...document.querySelectorAll("section[data-machine]")].find((found) => found.dataset.machine === name);
  if (!panel) return;
  put(panel.querySelector("[data-total]"), figure(total));
  for (const block of panel.querySelectorAll("[data-state]")) {
    putCount(block.querySelector("[data-count]"), countOf(block, counts));
  }
}

/** Somebody is at the handover note: it waits for them. */
function isWritten() {
  const text = document.querySelector(".note textarea");
  return document.querySelector(".note details[open]") !== null || text?.value !== text?.defaultValue;
}

function sum(queues, place) {
  return Object.values(queues).reduce((all, held) => all + (held[place] ?? 0), 0);
}

// What figures alone cannot show (a new machine, a queue with dead jobs, a worker gone) is rendered anew. The first
// value may differ from what the server rendered a moment ago: then nobody knows what else does.
function renew({ machines, workers }, differs) {
  const shape = JSON.stringify([workers, Object.entries(machines).sort().map(([name, machine]) => [
    name, machine.version, machine.total === 0, !workers && machine.overdue > 0, machine.breaches,
    Object.values(machine.queues ?? {}).map((held) => [held.dead, held.ready > 0]),
  ])]);
  if (known ? known !== shape : differs) again();
  known = shape;
}
