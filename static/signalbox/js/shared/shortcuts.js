// Keyboard shortcuts of every page. One table serves the keys and the dialog that lists them.

import { element } from "./dom.js";
import { openPalette } from "./palette.js";

const AFTER_G = 1500; // ms to press the second key
const ROW_LINK = "main tbody tr :is(th, td) a[href]";

export const KEYS = [
  { keys: "?", says: "Show keyboard shortcuts", run: list },
  { keys: "/", says: "Search", run: search },
  { keys: "Ctrl k", says: "Open the palette: go anywhere" },
  { keys: "j", says: "Next row", run: () => step(1) },
  { keys: "k", says: "Previous row", run: () => step(-1) },
  { keys: "Enter", says: "Open row" },
  { keys: "p", says: "Freeze or unfreeze the view", run: () => press("[data-freeze]") },
  { keys: "g m", says: "Machine of this page", to: `.crumbs a[href^="${document.body.dataset.mount}machines/"]` },
  ...places(),
  { keys: "g y", says: "Account", to: "[data-place=account]" },
  { keys: "Esc", says: "Close dialog or leave search" },
];

// The places of the bar and the foot say their keys themselves (dashboard/shared/navigation.py).
function places() {
  return [...document.querySelectorAll("[data-place][data-key]")].map(({ dataset, firstChild }) => ({
    keys: `g ${dataset.key}`, says: firstChild.textContent.trim(), to: `[data-place=${dataset.place}]`,
  }));
}

let first = ""; // "g", until the second key
let forget = null;

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "Escape" && target.matches("[data-search]")) return target.blur();
  if (document.body.dataset.keys === "off" || typing(target) || document.querySelector("dialog[open]")) return;
  const pressed = first ? `${first} ${key}` : key;
  const found = KEYS.find(({ keys, run, to }) => keys === pressed && (run || document.querySelector(to)));
  wait(!first && key === "g" ? key : "");
  if (!found) return;
  event.preventDefault();
  if (found.run) found.run();
  else document.querySelector(found.to).click();
});

const opener = document.querySelector("[data-keys-list]");
if (opener) {
  opener.hidden = false;
  opener.addEventListener("click", list);
}

function typing(target) {
  return target.isContentEditable || target.matches("input, textarea, select, [role=slider]");
}

function wait(key) {
  clearTimeout(forget);
  first = key;
  if (key) forget = setTimeout(wait, AFTER_G, "");
}

function press(selector) {
  const button = document.querySelector(selector);
  if (button && !button.hidden) button.click();
}

// Moves between the first links of visible rows. Enter opens a focused link as usual.
function step(by) {
  const rows = new Map();
  for (const link of document.querySelectorAll(ROW_LINK)) {
    const row = link.closest("tr");
    if (!rows.has(row) && link.checkVisibility()) rows.set(row, link);
  }
  const links = [...rows.values()];
  const here = links.indexOf(rows.get(document.activeElement.closest("tr")));
  const next = links[here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by];
  next?.focus();
  next?.closest("tr").scrollIntoView({ block: "nearest" });
}

// The field of the bar, and the palette where the bar has no room for one.
function search() {
  const field = document.querySelector("[data-search]");
  if (field?.checkVisibility()) field.select();
  else openPalette();
}

function list() {
  const dialog = document.querySelector("#keys") ?? document.body.appendChild(makeDialog());
  dialog.showModal();
}

function makeDialog() {
  const rows = KEYS.filter(({ to }) => !to || document.querySelector(to)).flatMap(({ keys, says }) => [
    element("dt", {}, ...keys.split(" ").map((key) => element("kbd", {}, key))),
    element("dd", {}, says),
  ]);
  const close = element("button", { autofocus: true }, "Close");
  const dialog = element("dialog", { id: "keys", className: "sheet keys" },
    element("header", {}, element("h2", { id: "keys-title" }, "Keyboard shortcuts"), element("form", { method: "dialog" }, close)),
    element("dl", {}, ...rows),
  );
  dialog.setAttribute("aria-labelledby", "keys-title");
  if (document.body.dataset.keys === "off") dialog.append(element("p", {}, "Shortcuts are turned off in your account."));
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  return dialog;
}
