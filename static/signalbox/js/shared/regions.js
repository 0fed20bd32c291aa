// Replaces regions of the page, `data-region`, by those of the page as the server renders it now.

import { fetchText } from "./fetcher.js";
import { parseHtml } from "./trusted_document.js";

/** Replaces the regions called `names` by those of the page at `url`; see `load` and `swap`. The event "refreshed" follows: the
 *  latest live value, which the server may not have had yet, has to be written into them again. */
export async function refresh(names, url = location.href, { signal, late, stays = isTyped } = {}) {
  const fresh = await load(url, { signal, late });
  if (!fresh) return false;
  for (const name of names) {
    swap(find(document, name), find(fresh, name), stays);
  }
  document.dispatchEvent(new Event("refreshed"));
  return true;
}

/** Returns the document at `url`, or null. One that arrives after the page has gone to another address is null, too, unless it
 *  may be `late`: it would replace what was chosen meanwhile. */
export async function load(url, { signal, late = false } = {}) {
  const here = location.href;
  const text = await fetchText(url, { signal });
  return text === null || (!late && location.href !== here) ? null : parseHtml(text);
}

/** Returns the address of this page, also where it took a form: it then has another one, which leads away when it is read. */
export function address() {
  const { page } = document.body.dataset;
  return location.pathname === page ? location.href : page;
}

export function find(root, name) {
  return [...root.querySelectorAll("[data-region]")].find((element) => element.dataset.region === name);
}

/** Whether something is being typed in the region. */
export function isTyped(region) {
  return [...region.querySelectorAll("input:not([type=checkbox], [type=radio]), textarea")].some((field) => field.value !== field.defaultValue);
}

/** Returns the open sheet (a popover) in `root`, if any. */
export function openSheet(root = document) {
  return CSS.supports("selector(:popover-open)") ? root.querySelector(":popover-open") : null;
}

/** Replaces a region by another; of one that holds the focus or `stays`, the regions inside of it. An open sheet stays, and its
 *  button keeps the focus. Texts stay scrolled where they are. */
export function swap(old, fresh, stays = isTyped) {
  if (!old || !fresh || openSheet(old) || old.isEqualNode(fresh)) return;
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const sheet = held?.getAttribute("popovertarget");
  if ((held && !sheet) || stays(old)) return swapInside(old, fresh, stays);
  const open = new Set([...old.querySelectorAll("details[open] > summary")].map(nameFold));
  const element = document.importNode(fresh, true);
  for (const summary of element.querySelectorAll("details > summary")) {
    if (open.has(nameFold(summary))) summary.parentElement.open = true;
  }
  const scrolled = listTexts(old).map(({ scrollTop, scrollLeft }) => ({ top: scrollTop, left: scrollLeft }));
  old.replaceWith(element);
  listTexts(element).forEach((part, at) => part.scrollTo(scrolled[at] ?? {}));
  const successor = sheet && [...element.querySelectorAll("[popovertarget]")].find((button) => button.getAttribute("popovertarget") === sheet);
  successor?.focus({ preventScroll: true });
}

function listTexts(region) {
  return [...region.querySelectorAll("pre[tabindex]")];
}

function nameFold(summary) {
  return summary.closest("[data-region]").dataset.region + summary.textContent.trim();
}

function swapInside(old, fresh, stays) {
  for (const region of listOutermost(old)) {
    const successor = find(fresh, region.dataset.region);
    if (successor) swap(region, successor, stays);
    else if (!region.contains(document.activeElement) && !stays(region)) region.remove();
  }
  for (const region of listOutermost(fresh)) if (!find(old, region.dataset.region)) old.append(document.importNode(region, true));
}

function listOutermost(root) {
  return [...root.querySelectorAll("[data-region]")].filter((region) => region.parentElement.closest("[data-region]") === root);
}
