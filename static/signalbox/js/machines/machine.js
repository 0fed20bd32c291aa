import { connectPage, isResting } from "../live/indicator.js";
import { center } from "../diagram/frames.js";
import { throttle } from "../shared/fetcher.js";
import { figure } from "../shared/format.js";
import { copyFigures, countOf, putLive } from "../diagram/drawing.js";
import { changesIn, put, putCount, putDepths } from "../shared/dom.js";
import { address, find, load, swap } from "../shared/regions.js";
import { refreshRows, watchNew } from "./instance_rows.js";
import { completeQueryLine } from "./query_line.js";

const { machine, version, current } = document.body.dataset;
const REGIONS = ["versions", "modes", "tabs", "states"];
const OFTEN = 10_000; // ms between two readings by the clock: ages grow and rates fall while nothing happens
const SELDOM = 60_000; // the same in the mode of counts
const form = () => document.querySelector("form.selection");
const boxes = () => [...form().querySelectorAll("input[name=pick]")];
const again = throttle(renew, 2000, { seen: true });
let latest = null;
let known = ""; // the latest value without its time

center();
watchSelection();
watchNew();
completeQueryLine();
wait();

connectPage().subscribe(`machine:${machine}`, (value) => {
  if (value.gone) return;
  const { now: _, ...figures } = value;
  const text = JSON.stringify(figures);
  const differs = changesIn(() => show(value));
  if (latest ? text !== known : differs || !isPlain()) again();
  [latest, known] = [value, text];
});
for (const change of ["redrawn", "refreshed"]) document.addEventListener(change, () => latest && show(latest));

function wait() {
  setTimeout(() => {
    if (!isResting()) again();
    wait();
  }, isPlain() ? SELDOM : OFTEN);
}

// With a filter, figures are those of what it finds, which no live value has.
function isNarrowed() {
  return "narrowed" in find(document, "listing").dataset;
}

/** Whether the diagram shows the counts of all instances. */
function isPlain() {
  return !isNarrowed() && find(document, "modes").dataset.mode === "count";
}

// Shows the figures that a live value has, at once.
function show(value) {
  const { counts, total } = value;
  for (const drawing of document.querySelectorAll(".sb-diagram")) putLive(drawing, version, value, isPlain());
  put(document.querySelector(".facts [data-total]"), figure(total));
  put(document.querySelector(".facts [data-timers]"), figure(value.timers));
  if (!isNarrowed()) {
    put(document.querySelector(".tabs [data-total]"), figure(total));
    for (const place of document.querySelectorAll(".tabs [data-state], tr[data-state]")) {
      putCount(place.querySelector("[data-count]"), countOf(place, counts));
    }
  }
  const own = Object.entries(value.queues ?? {}).map(([queue, held]) => [`${machine}/${queue}`, held]);
  putDepths(Object.fromEntries(own), document.querySelector("main"));
  put(document.querySelector("[data-newest]"), String(value.version));
  document.querySelector("[data-outdated]").hidden = String(value.version) === current;
}

// Shows all other figures, as the server renders them now. A newer version has a diagram of other parts, and is announced. A
// frozen page stays as it is, and asks again once it is not.
async function renew(signal) {
  const fresh = isResting() ? null : await load(addressFigures(), { signal });
  if (isResting()) return again();
  if (fresh) {
    for (const name of REGIONS) swap(find(document, name), find(fresh, name));
    if (fresh.body.dataset.version === version) copyFigures(find(document, "drawing"), find(fresh, "drawing"));
    const found = fresh.querySelector("[data-found]").textContent;
    for (const place of document.querySelectorAll("[data-found]")) put(place, found);
    if (latest) show(latest); // the server may have rendered before it
  }
  await refreshRows(signal);
}

// The address of the page without what has no figures.
function addressFigures() {
  const url = new URL(address(), location.href);
  url.searchParams.set("figures", "");
  return url;
}

// Selects rows of the instance list: all of a page by one box, and says how many are selected while the list is replaced.
function watchSelection() {
  const region = document.querySelector("[data-region=listing]");
  region.addEventListener("change", ({ target }) => {
    if (!form() || target.type !== "checkbox") return;
    if (target.closest("[data-pick-all]")) for (const box of boxes()) box.checked = target.checked;
    tell();
  });
  new MutationObserver(tell).observe(region, { childList: true });
  tell();
}

function tell() {
  if (!form()) return;
  const all = form().querySelector("[data-pick-all]");
  const picked = boxes().filter((box) => box.checked).length;
  const box = all.querySelector("input");
  all.hidden = false;
  box.checked = picked > 0 && picked === boxes().length;
  box.indeterminate = picked > 0 && !box.checked;
  form().querySelector("[data-picked]").textContent = picked ? `${picked} selected:` : "Select instances:";
  for (const button of form().querySelectorAll("button")) button.disabled = !picked;
}
