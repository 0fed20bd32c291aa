// Diagrams in their frames: zoom, pan, fold to the top level and back, and scroll to the current state.

import { enableEdges } from "./edges.js";
import { enableFocus } from "./focus.js";
import { enableJump } from "./jump.js";
import { enableLineKeys } from "./keys.js";
import { enableMinimap } from "./minimap.js";
import { refresh } from "../shared/regions.js";
import { enableZoom } from "../../admin/zoom.js";

const REGIONS = ["view", "modes", "drawing", "trail", "tabs", "states", "listing"]; // replaced if they are on the page
const BEGINNINGS = [".node.current, .chosen", ".mark.shown.failing", ".mark.shown", ".start"]; // the first that is there
const LINKS = "a[data-view], a[data-mode-link], a.fold";

const views = new Map([...document.querySelectorAll("[data-diagram]")].map((frame) => [frame, enableZoom(frame)]));

for (const [frame, view] of views) {
  enableLineKeys(frame);
  enableEdges(frame);
  enableMinimap(frame);
  enableJump(frame, view);
  enableFocus(frame, view);
}

/** Scrolls each diagram to its highlighted state, else to where something is wrong, else to the start, unless a person
 *  has zoomed or moved it. */
export function center() {
  for (const [frame, view] of views) {
    view.apply();
    if (view.chosen) continue;
    const [lit = []] = BEGINNINGS.map((which) => [...frame.querySelectorAll(which)]).filter(({ length }) => length);
    if (!lit.length) continue;
    const part = around(lit.map((mark) => mark.getBoundingClientRect()));
    const whole = frame.getBoundingClientRect();
    frame.scrollLeft += part.x - whole.left - whole.width / 2;
    frame.scrollTop += part.y - whole.top - whole.height / 2;
  }
}

/** Returns the middle of the box around all parts. */
function around(parts) {
  const x = Math.min(...parts.map((part) => part.left)) + Math.max(...parts.map((part) => part.right));
  const y = Math.min(...parts.map((part) => part.top)) + Math.max(...parts.map((part) => part.bottom));
  return { x: x / 2, y: y / 2 };
}

/** Opens a link to another view or mode of the diagram without leaving the page. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest(LINKS);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const href = link.getAttribute("href"); // `href` of a link in an SVG is no text
  const { dataset, id } = link;
  const at = link.getBoundingClientRect();
  link.blur();
  if (!(await refresh(REGIONS, href))) return location.assign(href);
  history.replaceState(null, "", href.split("#")[0] || location.pathname);
  if (dataset.fold) hold(id, at);
  else {
    if (!dataset.modeLink) for (const view of views.values()) view.settle();
    center();
    [...document.querySelectorAll(LINKS)].find((other) => other.dataset.modeLink === dataset.modeLink)?.focus();
  }
  document.dispatchEvent(new Event("redrawn"));
});

/** Scrolls so that the fold button of a state stays under the pointer. */
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

new ResizeObserver(() => views.forEach((view) => (view.chosen ? view.tell() : view.settle()))).observe(document.documentElement);
