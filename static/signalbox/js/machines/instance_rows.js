// Updates the rows of the instance list in place while instances move. A line above the list says how many are new.

import { timeSince } from "../shared/ages.js";
import { element } from "../shared/dom.js";
import { follow } from "../shared/fetcher.js";
import { refill } from "../shared/regions.js";

const list = () => document.querySelector("[data-list]");
const RELOADED = ["since", "version", "actor", "suspended", "data"].map((name) => `[data-cell=${name}]`).join();

const rows = () => [...document.querySelectorAll("tr[data-row]")];
const line = () => document.querySelector("[data-fresh]");

export class Rows {
  #ask = follow(address, put);

  constructor() {
    line().addEventListener("click", (event) => {
      if (!event.target.closest("a")) return;
      event.preventDefault();
      load();
    });
  }

  /** Reports that instances have moved. */
  heard() {
    this.#ask();
  }
}

function address() {
  if (!list().dataset.rows) return null;
  const url = new URL(list().dataset.rows, location.href);
  for (const row of rows()) url.searchParams.append("row", row.dataset.row);
  return url;
}

function put({ rows: found, new: fresh, more }) {
  for (const row of rows()) if (row.dataset.row in found) putRow(row, found[row.dataset.row]);
  tell(fresh ? `${fresh}${more ? "+" : ""} new` : "");
}

function putRow(row, found) {
  row.classList.toggle("gone", found === null);
  if (found === null) return putStates(row, [], { word: "deleted" });
  if (row.dataset.revision === String(found.revision)) return undefined;
  row.dataset.revision = found.revision;
  cell(row, "revision")?.replaceChildren(String(found.revision));
  cell(row, "entered")?.replaceChildren(timeSince(found.entered));
  for (const old of row.querySelectorAll(RELOADED)) markOld(old);
  const moved = found.states.join(", ") !== row.dataset.states;
  return putStates(row, found.states, { ...found, word: moved ? "moved to" : "" });
}

function putStates(row, states, { word, done, suspended }) {
  const parts = states.map((name) => mark(`state${done ? " final" : ""}`, name));
  if (word) parts.unshift(mark("moved", word));
  if (suspended) parts.push(mark("held", "suspended"));
  cell(row, "states").replaceChildren(...parts.flatMap((part) => [part, " "]));
}

/** Values that only a reload brings: of before the change. */
function markOld(cell) {
  cell.classList.add("faint");
  cell.title = "Before the latest change";
}

function mark(className, text) {
  return element("span", { className }, text);
}

function cell(row, name) {
  return row.querySelector(`[data-cell=${name}]`);
}

function tell(text) {
  if (line().textContent === text) return;
  if (!text) return line().replaceChildren();
  return line().replaceChildren(element("a", { href: `${list().dataset.first}#instances` }, text));
}

async function load() {
  await refill(list(), list().dataset.list);
  tell("");
  list().querySelector("a.key")?.focus({ preventScroll: true });
}
