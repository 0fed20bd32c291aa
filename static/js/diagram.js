// Drawings in their frames: they zoom and pan, fold to their top level and back, and start where it matters.

import { walkable } from "./lines.js";
import { refresh } from "./regions.js";
import { zoomable } from "../machines/zoom.js";

const REGIONS = ["view", "modes", "drawing", "trail", "tabs", "states", "listing"]; // those that are on the page
const LINKS = "a[data-view], a[data-telling], a.fold";

const views = new Map([...document.querySelectorAll("[data-diagram]")].map((frame) => [frame, zoomable(frame)]));

for (const frame of views.keys()) walkable(frame);

/** A drawing that is larger than its frame is moved to the lit state, or to the start; not one that somebody moved. */
export function center() {
  for (const [frame, view] of views) {
    view.apply();
    if (view.chosen) continue;
    const lit = [...frame.querySelectorAll(".node.current, .chosen")];
    if (!lit.length) lit.push(...[frame.querySelector(".start")].filter(Boolean));
    if (!lit.length) continue;
    const part = around(lit.map((mark) => mark.getBoundingClientRect()));
    const whole = frame.getBoundingClientRect();
    frame.scrollLeft += part.x - whole.left - whole.width / 2;
    frame.scrollTop += part.y - whole.top - whole.height / 2;
  }
}

/** The middle of what holds them all. */
function around(parts) {
  const x = Math.min(...parts.map((part) => part.left)) + Math.max(...parts.map((part) => part.right));
  const y = Math.min(...parts.map((part) => part.top)) + Math.max(...parts.map((part) => part.bottom));
  return { x: x / 2, y: y / 2 };
}

/** Follows a link to another view or mode of the drawing without leaving the page. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest(LINKS);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const href = link.getAttribute("href"); // of a link in a drawing, `href` is no text
  const { dataset, id } = link;
  const at = link.getBoundingClientRect();
  link.blur();
  if (!(await refresh(REGIONS, href))) return location.assign(href);
  history.replaceState(null, "", href.split("#")[0] || location.pathname);
  if (dataset.fold) hold(id, at);
  else {
    if (!dataset.telling) for (const view of views.values()) view.settle();
    center();
    [...document.querySelectorAll(LINKS)].find((other) => other.dataset.telling === dataset.telling)?.focus();
  }
  document.dispatchEvent(new Event("redrawn"));
});

/** A state that was folded or unfolded stays under the hand: its grip is where it was before. */
function hold(id, before) {
  const grip = document.getElementById(id);
  const frame = grip?.closest("[data-diagram]");
  if (!frame) return;
  const view = views.get(frame);
  if (view.chosen) view.apply();
  else view.settle();
  const after = grip.getBoundingClientRect();
  frame.scrollLeft += after.left - before.left;
  frame.scrollTop += after.top - before.top;
  grip.focus({ preventScroll: true });
}

new ResizeObserver(() => views.forEach((view) => view.tell())).observe(document.documentElement);
