// Updates the rows of the instance list in place while instances move. A line above the list says how many are new.

import { element } from "../shared/dom.js";
import { find, load } from "../shared/regions.js";

const list = () => find(document, "listing");
const listRows = (root) => [...root.querySelectorAll("tr[data-row]")];
const line = () => document.querySelector("[data-fresh]");

/** Shows what became of the rows, and says how many instances are new. */
export async function refreshRows(signal) {
  if (!list().dataset.rows) return;
  const rows = listRows(document);
  const url = new URL(list().dataset.rows, location.href);
  for (const row of rows) url.searchParams.append("row", row.dataset.row);
  const fresh = await load(url, { signal });
  if (!fresh) return;
  const found = new Map(listRows(fresh).map((row) => [row.dataset.row, row]));
  for (const row of rows) putRow(row, found.get(row.dataset.row));
  tell(fresh.querySelector("[data-new]").textContent);
}

/** Replaces the list by its first page when the reader asks for what is new. */
export function watchNew() {
  line().addEventListener("click", async (event) => {
    if (!event.target.closest("a")) return;
    event.preventDefault();
    const fresh = await load(list().dataset.first);
    if (!fresh) return;
    list().replaceChildren(...document.importNode(find(fresh, "listing"), true).childNodes);
    tell("");
    list().querySelector("a.key")?.focus({ preventScroll: true });
  });
}

function putRow(row, found) {
  const states = row.querySelector("[data-cell=states]");
  row.classList.toggle("gone", !found);
  if (!found) {
    delete row.dataset.revision; // a new instance may have the same id
    return states.replaceChildren(mark("deleted"));
  }
  if (row.dataset.revision === found.dataset.revision) return undefined;
  row.dataset.revision = found.dataset.revision;
  const fresh = found.querySelectorAll("[data-cell]");
  row.querySelectorAll("[data-cell]").forEach((cell, at) => cell.replaceChildren(...document.importNode(fresh[at], true).childNodes));
  if (row.dataset.states !== found.dataset.states) states.prepend(mark("moved to"), " ");
  return undefined;
}

function mark(text) {
  return element("span", { className: "moved" }, text);
}

function tell(text) {
  if (line().textContent === text) return;
  line().replaceChildren(...(text ? [element("a", { href: `${list().dataset.first}#instances` }, text)] : []));
}
