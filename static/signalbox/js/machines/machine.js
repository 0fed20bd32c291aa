import { connectPage } from "../live/indicator.js";
import { timeSince } from "../shared/ages.js";
import { center } from "../diagram/frames.js";
import { throttle } from "../shared/fetcher.js";
import { figure } from "../shared/format.js";
import { Drawing } from "../diagram/drawing.js";
import { countOf } from "../diagram/overlay.js";
import { put, putCount, putDepths } from "../shared/dom.js";
import { refresh } from "../shared/regions.js";
import { Rows } from "./instance_rows.js";
import { SearchCounts } from "./search_counts.js";
import { completeQueryLine } from "./query_line.js";

const { machine, version, current } = document.body.dataset;
const isChosen = "chosen" in document.body.dataset; // the diagram is of one version, with its own instances
const drawing = new Drawing(version);
const rows = new Rows();
const figures = new SearchCounts(() => latest && show(latest));
const form = () => document.querySelector("form.selection");
const boxes = () => [...form().querySelectorAll("input[name=pick]")];
const PAUSE = 5000; // ms between two readings of the versions
let latest = null;
let seen = "";

const renew = throttle(() => refresh(["versions", "tabs", "states"]), PAUSE);

center();
watchSelection();
completeQueryLine();

connectPage().subscribe(`machine:${machine}`, (value) => {
  if (value.gone) return;
  latest = value;
  drawing.take(value);
  show(value);
  const now = JSON.stringify([value.counts, value.oldest, value.flow]);
  if (now === seen) return;
  seen = now;
  rows.heard();
  figures.heard();
  if (document.querySelector("nav[data-region=versions]")) renew();
});
for (const change of ["redrawn", "refreshed"]) document.addEventListener(change, () => latest && show(latest));

// With a filter, the figures are those of what it finds.
function show(value) {
  const { counts, total, partial } = figures.of(value);
  const more = partial ? "+" : "";
  drawing.show({ counts, partial, oldest: isChosen ? {} : value.oldest });
  put(document.querySelector(".facts [data-total]"), figure(value.total));
  put(document.querySelector(".tabs [data-total]"), `${figure(total)}${more}`);
  const chosen = document.querySelector('.tabs [aria-current][data-state], tr.chosen[data-state]');
  const found = `${figure(chosen ? countOf(chosen, counts) : total)}${more}`;
  for (const place of document.querySelectorAll("[data-found]")) put(place, found);
  put(document.querySelector(".facts [data-timers]"), figure(value.timers));
  for (const place of document.querySelectorAll(".tabs [data-state], tr[data-state]")) {
    putCount(place.querySelector("[data-count]"), countOf(place, counts), more);
    putOldest(place.querySelector("[data-oldest]"), value.oldest[place.dataset.state]);
  }
  const own = Object.entries(value.queues ?? {}).map(([queue, held]) => [`${machine}/${queue}`, held]);
  putDepths(Object.fromEntries(own), document.querySelector("main"));
  drawing.draw();
  put(document.querySelector("[data-newest]"), String(value.version));
  document.querySelector("[data-outdated]").hidden = String(value.version) === current;
  putVersions(document.querySelector("[data-region=versions]"), value);
}

// The instances of each version come from the server, whenever states without a place on the diagram change.
function putVersions(place, { counts, total }) {
  const known = [...document.querySelectorAll(".sb-diagram [data-state]")].flatMap(({ dataset }) => (dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state]));
  const absent = Object.keys(counts).filter((state) => counts[state] > 0 && !known.includes(state)).sort().join("\n");
  const rendered = place.dataset.elsewhere.split("\n").sort().join("\n");
  put(place.querySelector("[data-whole]"), figure(total));
  if (absent !== rendered) renew();
}

function putOldest(cell, entered) {
  if (!cell) return;
  if (!entered) return cell.replaceChildren("–");
  if (cell.firstElementChild?.dataset.at !== String(entered)) cell.replaceChildren(timeSince(entered));
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
