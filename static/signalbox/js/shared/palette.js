// The palette (Ctrl-K): a dialog with a field that suggests what has the name, then actions, and after a pause what holds the words.

import { element } from "./dom.js";
import { fetchJson } from "./fetcher.js";

const PAUSE = 120; // ms after the last letter
const WORD_PAUSE = 400; // ms more before words are searched, of at least three letters
const MOST = 20; // rows
const NAMED = ["instance", "archived instance", "definition", "job", "machine", "queue"]; // kinds whose names are those of programs

const opener = document.querySelector("[data-palette]");
const address = opener && `${document.body.dataset.mount}search.json`;
// What a button of this page does. A button that is not there is not offered.
const ACTIONS = [
  ["Freeze view", "[data-freeze]:not([hidden], [aria-pressed=true])"],
  ["Unfreeze view", "[data-freeze][aria-pressed=true]"],
  ["Theme: system", "[data-theme-choice=system]"],
  ["Theme: light", "[data-theme-choice=light]"],
  ["Theme: dark", "[data-theme-choice=dark]"],
  ["Keyboard shortcuts", "[data-keys-list]"],
];

let dialog = null;
let field = null;
let rows = null;
let chosen = -1;
let running = null;
let timer = null;

/** Opens the palette, with the focus in its field. */
export function openPalette() {
  if (!opener || dialog?.open) return;
  dialog ??= document.body.appendChild(makeDialog());
  field.value = "";
  rows.replaceChildren();
  dialog.showModal();
  ask();
}

function makeDialog() {
  field = element("input", {
    type: "search", name: "q", maxLength: 200, autocomplete: "off", spellcheck: false, role: "combobox", placeholder: "Go to or search…",
    "aria-label": "Go to a machine, instance, job, queue, view or action", "aria-controls": "palette-rows", "aria-expanded": "true",
    "aria-autocomplete": "list",
  });
  rows = element("ul", { id: "palette-rows", role: "listbox", "aria-label": "Suggestions" });
  const form = element("form", { action: opener.href, role: "search" }, field, rows,
    element("p", { className: "hint faint" }, "↑ ↓ choose · Enter opens · Esc closes"));
  const box = element("dialog", { className: "sheet palette", "aria-label": "Palette" }, form);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  field.addEventListener("keydown", steer);
  form.addEventListener("submit", submit);
  box.addEventListener("click", ({ target }) => target === box && box.close());
  box.addEventListener("close", () => running?.abort());
  return box;
}

async function ask() {
  running?.abort();
  const mine = (running = new AbortController());
  const asked = field.value.trim();
  const found = await fetchJson(`${address}?q=${encodeURIComponent(asked)}`, { signal: mine.signal });
  if (mine.signal.aborted) return;
  const local = ACTIONS.filter(([name, selector]) => matches(name, asked) && document.querySelector(selector));
  const all = [...(found?.rows ?? []), ...local.map(([name, selector]) => ({ kind: "action", name, selector }))];
  rows.replaceChildren(...all.slice(0, MOST).map(row));
  if (!all.length) rows.append(element("li", { className: "empty" }, found ? "No results" : "No answer: try again"));
  choose(asked && all.length ? 0 : -1);
  if (found && asked.length >= 3) timer = setTimeout(() => addWords(asked, all, mine.signal), WORD_PAUSE);
}

// Adds what holds the words behind the rows that are there, so that none of them moves.
async function addWords(asked, shown, signal) {
  const found = await fetchJson(`${address}?words=1&q=${encodeURIComponent(asked)}`, { signal });
  if (signal.aborted) return;
  const more = (found?.rows ?? []).filter((hit) => !shown.some(({ url, kind }) => url === hit.url && kind === hit.kind));
  if (more.length) rows.querySelector(".empty")?.remove();
  const first = rows.children.length;
  rows.append(...more.map((hit, at) => row(hit, first + at)));
  if (chosen < 0 && more.length) choose(0);
}

function matches(name, asked) {
  return asked.toLowerCase().split(/\s+/).every((word) => name.toLowerCase().includes(word));
}

function row(hit, place) {
  const made = element("li", { role: "option", id: `palette-${place}`, "aria-selected": "false" },
    element("span", { className: NAMED.includes(hit.kind) ? "key" : "" }, hit.name), element("span", { className: "faint" }, about(hit)));
  made.addEventListener("click", () => take(hit));
  made.addEventListener("pointermove", () => choose(place));
  made.take = () => take(hit);
  return made;
}

function about({ kind, of, place }) {
  const what = of ? `${kind} of ${of}` : kind;
  return place ? `${what}: ${place}` : what;
}

function take({ url, selector }) {
  dialog.close();
  if (selector) document.querySelector(selector).click();
  else location.assign(url);
}

function choose(place) {
  const options = rows.querySelectorAll("[role=option]");
  options[chosen]?.setAttribute("aria-selected", "false");
  chosen = place;
  const option = options[place];
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function steer(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const options = rows.querySelectorAll("[role=option]").length;
  if (!step || !options) return;
  event.preventDefault();
  choose(chosen < 0 && step < 0 ? options - 1 : (chosen + step + options) % options);
}

// Enter takes the chosen row. What was typed since the last answer is looked up by the search page, which opens a single match.
function submit(event) {
  const option = rows.querySelectorAll("[role=option]")[chosen];
  if (!option && field.value.trim()) return;
  event.preventDefault();
  option?.take();
}

if (opener) {
  opener.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPalette();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) openPalette();
  });
}
