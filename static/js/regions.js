// Parts of the page that are too rich to paint figure by figure: the server renders them anew, we put them in place.

import { fetchText } from "./fetcher.js";
import { parsed } from "./trusted.js";

/** Takes the regions called `names` from the page at `url` and puts them in place of ours. */
export async function refresh(names, url = location.href, signal = undefined) {
  const fresh = await load(url, signal);
  if (!fresh) return false;
  for (const name of names) {
    swap(find(document, name), find(fresh, name));
  }
  return true;
}

/** Replaces the content of `element` by the document at `url`. */
export async function refill(element, url) {
  const fresh = await load(url);
  if (fresh && !element.contains(document.activeElement)) element.replaceChildren(...fresh.body.childNodes);
}

/** The document at `url`; null where there is none for us now. */
export async function load(url, signal) {
  const text = await fetchText(url, { signal });
  return text === null ? null : parsed(text);
}

export function find(root, name) {
  return [...root.querySelectorAll("[data-region]")].find((element) => element.dataset.region === name);
}

/** The sheet that is open on top of the page, if one is in `root`. */
export function openSheet(root = document) {
  return CSS.supports("selector(:popover-open)") ? root.querySelector(":popover-open") : null;
}

// What somebody is in stays as it is; a button that opened a sheet keeps the focus over the change.
function swap(old, fresh) {
  if (!old || !fresh || openSheet(old)) return;
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const sheet = held?.getAttribute("popovertarget");
  if (held && !sheet) return;
  const open = new Set([...old.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent.trim()));
  const element = document.importNode(fresh, true);
  for (const summary of element.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent.trim())) summary.parentElement.open = true;
  }
  old.replaceWith(element);
  const successor = sheet && [...element.querySelectorAll("[popovertarget]")].find((button) => button.getAttribute("popovertarget") === sheet);
  successor?.focus({ preventScroll: true });
}
