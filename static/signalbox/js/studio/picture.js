// The diagram beside the text: replaced by each new drawing, at the scale a person has chosen; a click on a part selects
// its text, and the part whose text has the cursor is highlighted.

import { enableZoom } from "../../admin/zoom.js";
import { enableLineKeys } from "../diagram/keys.js";
import { parseHtml } from "../shared/trusted_document.js";

export const frame = document.querySelector("[data-diagram]");
const place = frame.querySelector("[data-region=drawing]");
const said = document.querySelector("[data-drawn]");

export class Picture {
  #view = enableZoom(frame);
  #parts = {};
  #moved = (offset) => offset;
  #pointed = null;
  #cursor = 0;
  #marks = null;
  #others = [];
  #wanted = ""; // the state that gets the focus in the next drawing

  /** `show(from, to, focus)` selects text; `chosen(state)` hears of a click on one. */
  constructor(show, chosen) {
    enableLineKeys(frame);
    const go = (event, focus) => {
      const part = event.target.closest(".state, .transition, .history");
      const range = part && this.#parts[part.id];
      if (range) show(this.#moved(range[0]), this.#moved(range[1]), focus);
      return range && part;
    };
    frame.addEventListener("click", (event) => {
      const part = go(event, false);
      part?.focus({ preventScroll: true });
      if (part?.dataset.state) chosen(part.dataset.state);
    });
    frame.addEventListener("keydown", (event) => event.key === "Enter" && go(event, true) && event.preventDefault());
  }

  /** The names of the states that are drawn. */
  get states() {
    return [...place.querySelectorAll(".state")].map(({ dataset }) => dataset.state);
  }

  /** The state of the text at the cursor, or that of its transition; "" for none. */
  get pointed() {
    const { state, source } = this.#pointed?.dataset ?? {};
    return state ?? source ?? "";
  }

  /** Marks the states that others are in. */
  markOthers(others = this.#others) {
    this.#others = others;
    const states = new Set(others.map(({ state }) => state));
    for (const part of place.querySelectorAll(".state")) part.classList.toggle("theirs", states.has(part.dataset.state));
  }

  /** Gives the focus to a state in the next drawing. */
  focus(state) {
    this.#wanted = state;
  }

  /** Shows the drawing of an answer, or marks the one that is there as old. */
  take({ svg, drawing, parts, errors, folded }, moved) {
    if (svg) this.#draw(svg);
    const stale = !drawing && place.firstElementChild !== null;
    frame.classList.toggle("stale", stale);
    if (drawing) {
      this.#parts = parts;
      this.#moved = moved;
      this.point(this.#cursor);
    }
    tell(stale ? "before the errors" : folded ? "top level only" : !drawing && errors ? "nothing to draw yet" : "");
  }

  /** Keeps offsets right while nothing new is known. */
  map(moved) {
    this.#moved = moved;
  }

  /** Highlights the part with the cursor: the innermost one. */
  point(offset) {
    this.#cursor = offset;
    let best = null;
    for (const [id, [from, to]] of Object.entries(this.#parts)) {
      const [start, end] = [this.#moved(from), this.#moved(to)];
      if (start <= offset && offset <= end && (!best || end - start < best.size)) best = { id, size: end - start };
    }
    const part = best && document.getElementById(best.id);
    if (part === this.#pointed && part?.classList.contains("pointed")) return;
    this.#pointed?.classList.remove("pointed");
    part?.classList.add("pointed");
    this.#pointed = part;
    if (part) reveal(part);
  }

  /** Marks the parts of a run: `current` and `taken`, ids; null for none. */
  mark(marks) {
    this.#marks = marks;
    for (const name of ["current", "taken"]) {
      for (const part of place.querySelectorAll(`.${name}`)) part.classList.remove(name);
      for (const id of marks?.[name] ?? []) document.getElementById(id)?.classList.add(name);
    }
  }

  #draw(svg) {
    const fresh = document.importNode(parseHtml(svg).querySelector("svg"), true);
    for (const part of fresh.querySelectorAll(".state, .history")) {
      part.setAttribute("tabindex", "0");
      part.setAttribute("role", "button");
      part.setAttribute("aria-label", `${part.dataset.state}: select its text`);
    }
    for (const line of fresh.querySelectorAll(".transition")) {
      line.setAttribute("role", "button");
      line.setAttribute("aria-label", `${line.dataset.events || "always"}, from ${line.dataset.source}: select its text`);
    }
    fresh.setAttribute("role", "group");
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    const first = !place.firstElementChild;
    place.replaceChildren(fresh);
    this.mark(this.#marks);
    this.markOthers();
    const busy = document.activeElement.closest(".draw, .cm-editor, input, textarea"); // the author types there
    const wanted = busy ? null : [...place.querySelectorAll(".state")].find(({ dataset }) => dataset.state === this.#wanted);
    (wanted ?? (focused && (document.getElementById(focused) ?? frame)))?.focus?.({ preventScroll: true });
    if (wanted) this.#wanted = "";
    if (this.#view.chosen && !first) this.#view.apply();
    else this.#view.settle();
    document.dispatchEvent(new Event("redrawn"));
  }
}

function tell(words) {
  if (said.textContent !== words) said.textContent = words;
}

// Scrolls the frame alone, and only where the part cannot be seen.
function reveal(part) {
  const whole = frame.getBoundingClientRect();
  const at = part.getBoundingClientRect();
  if (at.right < whole.left || at.left > whole.right) frame.scrollLeft += at.left - whole.left - whole.width / 2 + at.width / 2;
  if (at.bottom < whole.top || at.top > whole.bottom) frame.scrollTop += at.top - whole.top - whole.height / 2 + at.height / 2;
}
