// Reloads the upper part of each worker's card when the topic changes. A form that is being filled in stays.

import { serverTime } from "../shared/ages.js";
import { throttle } from "../shared/fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { find, load } from "../shared/regions.js";

const SILENT_AFTER = Number(document.body.dataset.silentAfter); // ms
const REGIONS = ["duties", "unwritten"];
const EVERY = 10000; // ms
const again = throttle(reconcile, 2000);

const cards = (root) => new Map([...root.querySelectorAll("[data-worker]")].map((card) => [card.dataset.worker, card]));

async function reconcile() {
  const fresh = await load(location.pathname);
  if (!fresh) return;
  for (const name of REGIONS) find(document, name).replaceWith(document.importNode(find(fresh, name), true));
  const [list, now] = [document.querySelector(".workers"), fresh.querySelector(".workers")];
  if (!list || !now) {
    if (list || now) location.reload(); // the first worker appeared, or the last one is gone
    return;
  }
  const [ours, theirs] = [cards(list), cards(now)];
  for (const [id, card] of ours) if (!theirs.has(id)) leave(card);
  for (const [id, card] of theirs) {
    if (ours.has(id)) renew(ours.get(id), card);
    else list.append(document.importNode(card, true));
  }
  for (const total of document.querySelectorAll("[data-total]")) {
    total.textContent = fresh.querySelector(`[data-total="${total.dataset.total}"]`)?.textContent ?? "";
  }
}

function renew(card, fresh) {
  card.dataset.seen = fresh.dataset.seen;
  const part = card.querySelector("[data-part]");
  if (part.contains(document.activeElement)) return;
  card.dataset.status = fresh.dataset.status;
  part.replaceWith(document.importNode(fresh.querySelector("[data-part]"), true));
  for (const button of card.querySelectorAll("button[name=order], [data-leaving]")) {
    const same = button.value ? `button[value="${button.value}"]` : "[data-leaving]";
    button.hidden = fresh.querySelector(same)?.hidden ?? true;
  }
}

/** Removes the card of a worker that has stopped or died, unless its form is being filled in. */
function leave(card) {
  if (card.contains(document.activeElement)) mark(card, "silent");
  else card.remove();
}

function mark(card, word) {
  const badge = card.querySelector("[data-worker-status]");
  if (badge.textContent === word) return;
  badge.textContent = word;
  badge.className = `worker-status ${word}`;
}

function watch() {
  for (const card of document.querySelectorAll("[data-worker]")) {
    const silent = serverTime() - Number(card.dataset.seen) >= SILENT_AFTER;
    mark(card, silent ? "silent" : card.querySelector("[data-worker-status]").dataset.word);
  }
}

connectPage().subscribe("workers", again);
setInterval(() => isResting() || again(), EVERY); // background duties and pending writes change without an event
setInterval(watch, 1000);
