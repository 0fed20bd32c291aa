// Putting figures where they belong. Only text and classes change, so nothing on the page moves.

import { figure } from "./format.js";
import { travelled } from "./pulses.js";

let changes = 0;

/** Whether anything that is painted while `action` runs differs from what the page showed before. */
export function changesIn(action) {
  const before = changes;
  action();
  return changes > before;
}

/** Sets an element's text when it differs, and lets it flash; answers whether it did. */
export function put(element, text) {
  if (!element || element.textContent === text) return false;
  changes += 1;
  element.textContent = text;
  flash(element);
  return true;
}

function flash(element) {
  element.classList.remove("changed");
  requestAnimationFrame(() => element.classList.add("changed"));
  element.addEventListener("animationend", () => element.classList.remove("changed"), { once: true });
}

/** A count in the page (blocks, tabs, tables). `more`: "+" where there are at least as many. */
export function putCount(element, number, more = "") {
  if (!element) return;
  put(element, `${figure(number)}${more}`);
  element.classList.toggle("zero", number === 0 && element.tagName === "TD");
  element.closest(".block")?.classList.toggle("none", number === 0);
}

/** Depths of queues: {"machine/queue": {ready, leased, delayed, dead}}. */
export function putDepths(queues, root = document) {
  for (const row of root.querySelectorAll("[data-queue]")) {
    const held = queues[row.dataset.queue];
    if (!held) continue;
    for (const cell of row.querySelectorAll("[data-place]")) {
      const number = held[cell.dataset.place] ?? 0;
      putCount(cell, number);
      cell.classList.toggle("bad", cell.dataset.place === "dead" && number > 0);
    }
  }
}

/** How many instances are in a state; of one with states in it, the sum of the leaves that its element names. */
export function countOf({ dataset }, counts) {
  const leaves = dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
  return leaves.reduce((all, leaf) => all + (counts[leaf] ?? 0), 0);
}

/** What one mode tells, on a drawing: `state`, `edge` and `queue` give {text, heat, still} for an element of the kind;
 *  what is `still` changes all the time, and does not flash. `name` is what a state's link is called. */
export function putDrawing(drawing, { state, edge, queue, name }, { counts, flow, queues }) {
  for (const part of drawing.querySelectorAll(".state[data-state]")) {
    const reading = state(part);
    putReading(part, ".count", reading);
    if (part.getAttribute("aria-label") !== name(part, reading)) part.setAttribute("aria-label", name(part, reading));
    part.classList.toggle("occupied", countOf(part, counts) > 0);
  }
  for (const part of drawing.querySelectorAll("[data-transition]")) {
    putReading(part, ".flow", edge(part));
    travelled(part, takenOf(part, flow));
  }
  for (const part of drawing.querySelectorAll(".queue[data-queue]")) {
    const held = queues[part.dataset.queue] ?? {};
    putReading(part, ".count", queue(held));
    part.classList.toggle("occupied", (held.ready ?? 0) > 0);
    part.classList.toggle("dead", (held.dead ?? 0) > 0);
  }
}

/** How often a line was taken: the sum of the transitions that it stands for. */
export function takenOf({ dataset }, flow) {
  return dataset.transition.split(" ").reduce((all, id) => all + (flow[id] ?? 0), 0);
}

function putReading(part, slot, { text, heat = 0, still = false }) {
  putText(part, slot, text, still);
  for (let step = 1; step <= 5; step += 1) part.classList.toggle(`heat-${step}`, step === heat);
}

/** The part of the drawing flashes as a whole, not the text in it. */
export function putText(part, slot, text, still = false) {
  const element = part.querySelector(slot);
  if (!element || element.textContent === text) return false;
  element.textContent = text;
  if (still) return false;
  changes += 1;
  flash(part);
  return true;
}
