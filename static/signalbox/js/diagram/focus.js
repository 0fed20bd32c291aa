// Focus: shows one state of a large diagram with its neighbours and dims all others. A click on another state moves the
// focus to it; Escape ends it and brings the earlier view back.

import { READABLE } from "../../admin/zoom.js";
import { lead } from "./jump.js";

const BEGINNINGS = [".state.chosen", ".node.current", ".state.initial", ".state"]; // where nothing was selected
const AIR = 24; // pixels around the neighbours

/** Enables focus in a frame, where the server rendered a button for it. */
export function enableFocus(frame, view) {
  const button = frame.closest(".panel")?.querySelector("[data-focus]");
  if (button) new Focus(frame, view, button).enable();
}

class Focus {
  #frame;
  #view;
  #button;
  #selected = ""; // the state that had the keyboard focus, or was found, last
  #name = ""; // of the state in focus
  #before; // the view before the focus

  constructor(frame, view, button) {
    [this.#frame, this.#view, this.#button] = [frame, view, button];
  }

  enable() {
    this.#button.addEventListener("click", () => this.#toggle());
    this.#frame.addEventListener("focusin", ({ target }) => {
      if (target.matches(this.#name ? ".state:focus-visible" : ".state")) this.#select(target.dataset.state);
    });
    this.#frame.addEventListener("found", ({ target }) => this.#select(target.dataset.state));
    this.#frame.addEventListener("click", (event) => this.#onclick(event), { capture: true });
    this.#frame.addEventListener("keydown", ({ key, ctrlKey, metaKey, altKey }) => {
      if (key === "f" && !ctrlKey && !metaKey && !altKey) this.#toggle();
    });
    document.addEventListener("keydown", (event) => this.#onescape(event), { capture: true });
    document.addEventListener("redrawn", () => this.#name && this.#mark());
  }

  #select(name) {
    this.#selected = name;
    if (this.#name) this.#begin(name);
  }

  #toggle() {
    if (this.#name) return this.#end();
    const name = this.#find(this.#selected)
      ? this.#selected
      : BEGINNINGS.map((which) => this.#frame.querySelector(`${which}[data-state]`)).find(Boolean)?.dataset.state;
    if (name) this.#begin(name);
  }

  #onclick(event) {
    const state = event.target.closest(".state");
    if (!this.#name || !state || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.#select(state.dataset.state);
  }

  // Escape belongs to a dialog, to the box of a line and to a line before it ends the focus.
  #onescape(event) {
    if (event.key !== "Escape" || !this.#name || event.target.closest?.(".transition")) return;
    if (document.querySelector("dialog[open], #edge-box:popover-open")) return;
    event.preventDefault();
    this.#end();
  }

  #find(name) {
    return [...this.#frame.querySelectorAll(".state[data-state]")].find(({ dataset }) => dataset.state === name);
  }

  #begin(name) {
    if (this.#name === name) return;
    this.#before ??= { scale: this.#view.scale, left: this.#frame.scrollLeft, top: this.#frame.scrollTop };
    this.#name = name;
    this.#mark();
    const sides = [...this.#frame.querySelectorAll(".node.near")].map((part) => part.getBoundingClientRect());
    const width = Math.max(...sides.map(({ right }) => right)) - Math.min(...sides.map(({ left }) => left)) + 2 * AIR;
    const height = Math.max(...sides.map(({ bottom }) => bottom)) - Math.min(...sides.map(({ top }) => top)) + 2 * AIR;
    const fitting = this.#view.scale * Math.min(this.#frame.clientWidth / width, this.#frame.clientHeight / height);
    this.#view.zoom(Math.min(1, Math.max(READABLE, fitting)));
    lead(this.#frame, this.#view, this.#find(name));
  }

  #end() {
    const { scale, left, top } = this.#before;
    this.#name = "";
    this.#before = undefined;
    this.#mark();
    this.#view.zoom(scale);
    this.#frame.scrollTo(left, top);
  }

  #mark() {
    const near = this.#name ? listNear(this.#frame, this.#find(this.#name)) : new Set();
    for (const part of this.#frame.querySelectorAll(".near")) part.classList.toggle("near", near.has(part));
    for (const part of near) part.classList.add("near");
    this.#frame.classList.toggle("focused", near.size > 0);
    this.#button.setAttribute("aria-pressed", String(near.size > 0));
    this.#button.setAttribute("aria-label", this.#name ? `Focus: ${this.#name}` : "Focus");
  }
}

/** Returns the state with what stands in it and around it, its lines, those of the states around it, and their other ends. */
function listNear(frame, state) {
  if (!state) return new Set();
  const states = [...frame.querySelectorAll(".state[data-state]")];
  const own = states.filter((other) => leaves(other).every((leaf) => leaves(state).includes(leaf)));
  const around = states.filter((other) => leaves(state).every((leaf) => leaves(other).includes(leaf)));
  const [inside, outside] = [own, around].map((parts) => parts.map(({ dataset }) => dataset.state));
  const lines = [...frame.querySelectorAll(".edge[data-source]")].filter(({ dataset: { source, target } }) =>
    inside.includes(source) || inside.includes(target) || outside.includes(source));
  const ends = lines.flatMap(({ dataset: { source, target, queue } }) => [source, target, queue]);
  const others = [...frame.querySelectorAll(".node, .controls > *")].filter(({ dataset: { state, queue, of, fold } }) =>
    [...ends, ...inside].includes(state ?? queue ?? of ?? fold));
  return new Set([...own, ...around, ...lines, ...others]);
}

function leaves({ dataset }) {
  return dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
}
