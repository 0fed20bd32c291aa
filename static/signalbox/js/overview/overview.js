import { throttle } from "../shared/fetcher.js";
import { figure } from "../shared/format.js";
import { connectPage, isResting } from "../live/indicator.js";
import { changesIn, put, putDepths } from "../shared/dom.js";
import { find, load, swap } from "../shared/regions.js";
import { putMachine, updateRows } from "./rows.js";

const REGIONS = ["alarms", "depths", "workers"];
const ROWS = "machines"; // updated row by row, so that none moves under the pointer
const { topic, hiddenMachines: hidden = "" } = document.querySelector("[data-topic]").dataset;
const hiddenMachines = new Set(hidden.split(",")); // system machines that the page does not list
const isPart = topic !== "overview"; // one page of several: figures of all machines come with the regions
const regions = isPart ? ["head", ...REGIONS] : REGIONS;
const again = throttle(renewRegions, 2000);
let ordered = false; // the order of the server is wanted, too
let known = "";
let latest = null;

connectPage().subscribe(topic, (value) => {
  latest = value;
  const differs = changesIn(() => show(value));
  renew(value, differs);
});

// No live value reports these: a pause that lasts, machines of other pages.
setInterval(() => isResting() || again(), isPart ? 15000 : 60000);

document.addEventListener("click", ({ target }) => {
  if (!target.closest("[data-new-order]")) return;
  target.blur();
  ordered = true;
  again();
});

async function renewRegions(signal) {
  const fresh = await load(location.href, { signal });
  if (!fresh) return;
  for (const name of regions) {
    if (name !== "depths" || listsAnother(fresh)) swap(find(document, name), find(fresh, name));
  }
  const [old, wanted] = [find(document, ROWS), find(fresh, ROWS)];
  if (ordered || !updateRows(old, wanted, !isPart)) swap(old, wanted);
  ordered = false;
  if (latest) show(latest); // the server may have rendered before it
}

function show({ machines, workers }) {
  const queues = {};
  let total = 0;
  for (const [name, machine] of Object.entries(machines)) {
    if (machine.unavailable || hiddenMachines.has(name)) continue;
    total += machine.total;
    putMachine(name, machine);
    for (const [queue, held] of Object.entries(machine.queues ?? {})) queues[`${name}/${queue}`] = held;
  }
  putDepths(queues);
  if (isPart) return;
  const sums = { total, workers, ready: sum(queues, "ready"), dead: sum(queues, "dead") };
  for (const element of document.querySelectorAll("[data-sum]")) {
    put(element, figure(sums[element.dataset.sum]));
    if (element.dataset.sum === "dead") element.classList.toggle("bad", sums.dead > 0);
  }
}

/** Whether a queue has jobs that the page does not list yet. One that is empty by now stays, so that no row moves. */
function listsAnother(fresh) {
  const listed = new Set([...document.querySelectorAll("[data-queue]")].map(({ dataset }) => dataset.queue));
  return [...fresh.querySelectorAll("[data-queue]")].some(({ dataset }) => !listed.has(dataset.queue));
}

function sum(queues, place) {
  return Object.values(queues).reduce((all, held) => all + (held[place] ?? 0), 0);
}

// Reloads regions when more than figures changed: a new machine, a queue with dead jobs, a worker gone. If the first value
// differs from the rendered page, anything else may differ, too.
function renew({ machines, workers }, differs) {
  const shape = JSON.stringify([workers, Object.entries(machines).sort().map(([name, machine]) => [
    name, machine.version, machine.missing?.length, machine.total === 0, !workers && machine.overdue > 0, machine.breaches,
    Object.values(machine.queues ?? {}).map((held) => [held.dead, held.ready > 0, held.delayed > 0]),
  ])]);
  if (known ? known !== shape : differs) again();
  known = shape;
}
