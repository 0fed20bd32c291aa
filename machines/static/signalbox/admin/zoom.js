// Zooms a diagram in its frame, which scrolls so that the point under the pointer stays there; without this script it scrolls.

import { drag } from "./pan.js";

const LEAST = 0.08;
const MOST = 4;
export const READABLE = 0.65; // of the natural size: below it names of states have less than 9 px
const SMALLEST = 0.3; // labels of lines are hidden below it
// Scales of a first view: all of the diagram from `whole` on, its width from `across` on, else a part of it.
const SMALL = { whole: 0.6, across: SMALLEST, part: 0.5 };
const LARGE = { whole: READABLE, across: READABLE, part: READABLE }; // a map shows the rest
const STEP = 1.25; // of the keys + and -

/** Enables zoom and pan in a frame; its buttons are the `[data-zoom]` of its panel. */
export function enableZoom(frame) {
  const view = new View(frame);
  frame.addEventListener("wheel", (event) => view.onwheel(event), { passive: false });
  frame.addEventListener("touchstart", (event) => view.ontouch(event), { passive: true });
  frame.addEventListener("touchmove", (event) => view.onpinch(event), { passive: false });
  frame.addEventListener("pointerdown", (event) => drag(frame, event));
  frame.addEventListener("keydown", (event) => view.onkey(event));
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  const tools = frame.closest(".panel")?.querySelector("[data-zoom]");
  if (tools) {
    tools.hidden = false;
    tools.addEventListener("click", (event) => view.onclick(event.target.closest("button")));
  }
  view.settle();
  return view;
}

class View {
  #frame;
  #scale = null; // null: as the stylesheet says
  chosen = false; // a person has set the scale
  #fingers = 0; // the distance between two of them

  constructor(frame) {
    this.#frame = frame;
  }

  get #svg() {
    return this.#frame.querySelector("svg");
  }

  get #natural() {
    const [, , width, height] = this.#svg.getAttribute("viewBox").split(" ").map(Number);
    return { width, height };
  }

  get scale() {
    return this.#svg ? this.#svg.getBoundingClientRect().width / this.#natural.width : 1;
  }

  /** Returns the scale at which the whole diagram is visible, at most its natural size. */
  get #fitting() {
    const style = getComputedStyle(this.#frame);
    const room = parseFloat(style.maxHeight) || this.#frame.clientHeight;
    return Math.min(this.#across, (room - 2 * parseFloat(style.paddingTop)) / this.#natural.height);
  }

  /** Returns the scale at which the whole width is visible, at most its natural size. */
  get #across() {
    const wide = 2 * parseFloat(getComputedStyle(this.#frame).paddingLeft);
    return Math.min(1, (this.#frame.clientWidth - wide) / this.#natural.width);
  }

  /** Sets the scale. `x`, `y`: the point of the window that stays in place; by default the middle of the frame. */
  zoom(scale, x, y) {
    if (!this.#svg) return;
    const whole = this.#frame.getBoundingClientRect();
    const at = { x: x ?? whole.left + this.#frame.clientWidth / 2, y: y ?? whole.top + this.#frame.clientHeight / 2 };
    const before = this.#svg.getBoundingClientRect();
    this.#scale = Math.min(MOST, Math.max(LEAST, scale));
    this.chosen = true;
    this.apply();
    const after = this.#svg.getBoundingClientRect();
    const grown = after.width / before.width;
    this.#frame.scrollLeft += after.left + (at.x - before.left) * grown - at.x;
    this.#frame.scrollTop += after.top + (at.y - before.top) * grown - at.y;
  }

  /** Applies the chosen scale, also to a diagram that replaced another. */
  apply() {
    if (this.#scale !== null && this.#svg) {
      this.#frame.classList.add("zoomed");
      for (const [side, size] of Object.entries(this.#natural)) {
        this.#svg.setAttribute(side, Math.floor(size * this.#scale));
      }
    }
    this.tell();
  }

  /** Resets the scale: the whole diagram; if its texts would be too small, its width; if that is, too, a part. */
  settle() {
    this.chosen = false;
    this.#scale = null;
    this.#frame.classList.remove("zoomed");
    if (this.#svg && this.#frame.clientWidth) {
      const { whole, across, part } = this.#frame.classList.contains("large") ? LARGE : SMALL;
      const width = this.#across >= across ? this.#across : part;
      this.#scale = this.#fitting >= whole ? this.#fitting : width;
    }
    this.apply();
  }

  tell() {
    this.#frame.classList.toggle("distant", this.scale < SMALLEST);
    const figure = this.#frame.closest(".panel")?.querySelector("[data-zoom-scale]");
    if (figure && this.#svg) figure.textContent = `${Math.round(this.scale * 100)} %`;
  }

  onclick(button) {
    const { zoomBy, zoomTo } = button?.dataset ?? {};
    if (zoomBy) this.zoom(this.scale * Number(zoomBy));
    if (zoomTo) this.zoom(zoomTo === "fit" ? this.#fitting : Number(zoomTo));
  }

  onwheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // plain wheels scroll
    event.preventDefault();
    this.zoom(this.scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.005)), event.clientX, event.clientY);
  }

  ontouch({ touches }) {
    this.#fingers = touches.length === 2 ? between(touches) : 0;
  }

  onpinch(event) {
    if (event.touches.length !== 2 || !this.#fingers) return; // one finger scrolls
    event.preventDefault();
    const [one, other] = event.touches;
    const now = between(event.touches);
    this.zoom((this.scale * now) / this.#fingers, (one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2);
    this.#fingers = now;
  }

  onkey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // these belong to the browser
    const scales = { "+": this.scale * STEP, "=": this.scale * STEP, "-": this.scale / STEP, 0: this.#fitting, 1: 1 };
    if (!(event.key in scales)) return; // arrows scroll by themselves
    event.preventDefault();
    this.zoom(scales[event.key]);
  }
}

function between([one, other]) {
  return Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
}
