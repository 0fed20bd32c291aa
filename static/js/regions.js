// Parts of the page that are too rich to paint figure by figure: the server renders them anew, we put them in place.

import { parsed } from "./trusted.js";

/** Takes the regions called `names` from the page at `url` and puts them in place of ours. */
export async function refresh(names, url = location.href) {
  const fresh = await load(url);
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

/** `action` at once, and then at most every `pause` ms however often it is asked for. Asked while it runs: once more. */
export function throttled(action, pause) {
  let last = -Infinity;
  let waiting = false;
  let asked = false;
  async function run() {
    asked = false;
    try {
      await action();
    } finally {
      last = performance.now();
      waiting = false;
      if (asked) ask();
    }
  }
  function ask() {
    asked = true;
    if (waiting) return;
    waiting = true;
    setTimeout(run, Math.max(0, last + pause - performance.now()));
  }
  return ask;
}

/** The document at `url`; null where there is none for us now. */
export async function load(url) {
  try {
    const response = await fetch(url, {
      credentials: "same-origin",
      headers: { Accept: "text/html" },
      signal: AbortSignal.timeout(10000), // an answer that never comes must not keep the next one away
    });
    if (!response.ok || response.redirected) return null; // signed out, or not there any more: the lamp tells
    return parsed(await response.text());
  } catch {
    return null;
  }
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
