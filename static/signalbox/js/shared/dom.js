// Writes texts and counts into elements. Only text and classes change, so the layout stays.

import { figure } from "./format.js";

let changes = 0;

/** Runs `action` and returns whether it changed any text on the page. */
export function changesIn(action) {
  const before = changes;
  action();
  return changes > before;
}

/** Sets an element's text if it differs and makes the element flash. Returns whether it differed. */
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

/** Makes an element with properties and content; properties with a dash become attributes. */
export function element(name, properties = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...content);
  return made;
}

/** Makes an element of a drawing. */
export function svgElement(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Writes a count into a block, tab or cell. `more`: "+" for a lower bound. */
export function putCount(element, number, more = "") {
  if (!element) return;
  put(element, `${figure(number)}${more}`);
  element.classList.toggle("zero", number === 0 && element.tagName === "TD");
  element.closest(".block")?.classList.toggle("none", number === 0);
}

/** Writes the depths of queues: {"machine/queue": {ready, leased, delayed, dead}}. */
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

/** Sets the text of `slot` in a part of a drawing; the whole part flashes. */
export function putText(part, slot, text, still = false) {
  const element = part.querySelector(slot);
  if (!element || element.textContent === text) return false;
  element.textContent = text;
  if (still) return false;
  changes += 1;
  flash(part);
  return true;
}
