// Parts of the page that are too rich to paint figure by figure: the server renders them anew, we put them in place.

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

async function load(url) {
  try {
    const response = await fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return null; // signed out, or not there any more: the lamp tells
    return new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    return null;
  }
}

function find(root, name) {
  return [...root.querySelectorAll("[data-region]")].find((element) => element.dataset.region === name);
}

function swap(old, fresh) {
  if (!old || !fresh || old.contains(document.activeElement)) return;
  const open = new Set([...old.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent.trim()));
  const element = document.importNode(fresh, true);
  for (const summary of element.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent.trim())) summary.parentElement.open = true;
  }
  old.replaceWith(element);
}
