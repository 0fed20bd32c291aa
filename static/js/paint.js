// Putting figures where they belong. Only text and classes change, so nothing on the page moves.

import { figure, short } from "./format.js";

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

/** A count in the page (blocks, tabs, tables). */
export function putCount(element, number) {
  if (!element) return;
  put(element, figure(number));
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

/** Counts on states, flow on edges, depths on queues of a drawing. `flow` holds this version's figures by transition. */
export function putDrawing(drawing, { counts, flow, queues }) {
  for (const state of drawing.querySelectorAll(".state[data-state]")) {
    const number = countOf(state, counts);
    putMark(state, ".count", short(number));
    state.classList.toggle("occupied", number > 0);
  }
  for (const edge of drawing.querySelectorAll("[data-transition]")) {
    const taken = edge.dataset.transition.split(" ").reduce((all, id) => all + (flow[id] ?? 0), 0);
    const moved = putMark(edge, ".flow", taken ? short(taken) : "");
    if (moved) busy(edge);
  }
  for (const queue of drawing.querySelectorAll(".queue[data-queue]")) {
    const held = queues[queue.dataset.queue] ?? {};
    putMark(queue, ".count", short(held.ready ?? 0));
    queue.classList.toggle("occupied", (held.ready ?? 0) > 0);
    queue.classList.toggle("dead", (held.dead ?? 0) > 0);
  }
}

// The part of the drawing flashes as a whole, not the text in it.
function putMark(part, slot, text) {
  const element = part.querySelector(slot);
  if (!element || element.textContent === text) return false;
  changes += 1;
  element.textContent = text;
  flash(part);
  return true;
}

const BUSY = 1500; // ms an edge shows that it was just taken
const timers = new WeakMap();

function busy(edge) {
  edge.classList.add("busy");
  clearTimeout(timers.get(edge));
  timers.set(edge, setTimeout(() => edge.classList.remove("busy"), BUSY));
}
