// A small map of a large diagram: which part of it the frame shows. The rectangle can be dragged, and moved by the keys.

import { svgElement } from "../shared/dom.js";

const [WIDTH, HEIGHT] = [160, 260]; // pixels, at most; on a phone half of it
const STEP = 0.25; // of what the frame shows, for an arrow key
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Enables the map of a frame, where the server left room for one. */
export function enableMinimap(frame) {
  const map = frame.parentElement.querySelector("[data-minimap]");
  if (!map) return;
  const draw = () => drawMap(map, frame);
  const update = () => showPart(map, frame);
  frame.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(frame.querySelector("[data-region=drawing]"));
  new ResizeObserver(update).observe(frame);
  document.addEventListener("redrawn", draw);
  map.addEventListener("pointerdown", (event) => follow(map, frame, event));
  map.addEventListener("keydown", (event) => step(frame, event));
  draw();
}

function drawMap(map, frame) {
  const drawing = frame.querySelector("svg");
  if (!drawing) return;
  const { width: wide, height: high } = drawing.viewBox.baseVal;
  const small = matchMedia("(max-width: 40rem)").matches ? 0.5 : 1;
  const scale = Math.min((small * WIDTH) / wide, (small * HEIGHT) / high);
  const svg = svgElement("svg", { viewBox: `0 0 ${wide} ${high}`, width: Math.round(wide * scale), height: Math.round(high * scale) });
  const [left, top] = [10, 10]; // the margin of a drawing
  for (const plate of drawing.querySelectorAll(".state > .plate")) {
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(plate.getAttribute(name)));
    const { classList } = plate.parentElement;
    const kind = ["cluster", "current", "chosen", "occupied"].filter((name) => classList.contains(name)).join(" ");
    svg.append(svgElement("rect", { class: `part ${kind}`, x: x + left, y: y + top, width, height }));
  }
  svg.append(svgElement("rect", { class: "view" }));
  map.replaceChildren(svg);
  showPart(map, frame);
}

/** Shows which part of the diagram the frame shows; hides the map where that is all of it. */
function showPart(map, frame) {
  const drawing = frame.querySelector("svg")?.getBoundingClientRect();
  const view = map.querySelector(".view");
  if (!drawing?.width || !view) return;
  const own = frame.getBoundingClientRect();
  const scale = frame.querySelector("svg").viewBox.baseVal.width / drawing.width;
  const part = { x: own.left - drawing.left, y: own.top - drawing.top, width: frame.clientWidth, height: frame.clientHeight };
  for (const [name, value] of Object.entries(part)) view.setAttribute(name, Math.round(value * scale));
  map.hidden = frame.scrollWidth <= frame.clientWidth + 1 && frame.scrollHeight <= frame.clientHeight + 1;
}

function follow(map, frame, event) {
  event.preventDefault();
  map.focus({ preventScroll: true });
  map.setPointerCapture(event.pointerId);
  const move = ({ clientX, clientY }) => {
    const small = map.querySelector("svg").getBoundingClientRect();
    const drawing = frame.querySelector("svg").getBoundingClientRect();
    const own = frame.getBoundingClientRect();
    const x = drawing.left + ((clientX - small.left) / small.width) * drawing.width;
    const y = drawing.top + ((clientY - small.top) / small.height) * drawing.height;
    frame.scrollBy(x - own.left - own.width / 2, y - own.top - own.height / 2);
  };
  move(event);
  map.addEventListener("pointermove", move);
  const stop = () => map.removeEventListener("pointermove", move);
  for (const end of ["pointerup", "pointercancel"]) map.addEventListener(end, stop, { once: true });
}

function step(frame, event) {
  const move = MOVES[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  frame.scrollBy(move[0] * STEP * frame.clientWidth, move[1] * STEP * frame.clientHeight);
}
