// Animates transitions: a line that was just taken lights up, and a dot runs along it.

import { svgElement } from "../shared/dom.js";

const BUSY = 1500; // ms that a line stays lit
const MOST = 6; // dots at a time
const LASTS = 1100; // ms that a dot runs
const PIECES = 24; // positions on its way
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const known = new WeakMap(); // line -> how often it was taken
const timers = new WeakMap();
const running = new Set();

/** Animates a line when its total number of uses, `taken`, has grown since the last call. */
export function showTravel(edge, taken) {
  const before = known.get(edge);
  known.set(edge, taken);
  if (before === undefined || taken <= before || document.hidden) return;
  edge.classList.add("busy");
  clearTimeout(timers.get(edge));
  timers.set(edge, setTimeout(() => edge.classList.remove("busy"), BUSY));
  run(edge);
}

async function run(edge) {
  const line = edge.querySelector("path.line");
  if (calm.matches || "calm" in document.body.dataset || !line || running.size >= MOST || running.has(edge)) return;
  running.add(edge);
  const dot = svgElement("circle", { class: "pulse", r: 4.5 });
  edge.append(dot);
  try {
    await dot.animate(way(line), { duration: LASTS, easing: "ease-in-out" }).finished;
  } finally {
    dot.remove();
    running.delete(edge);
  }
}

function way(line) {
  const whole = line.getTotalLength();
  return Array.from({ length: PIECES + 1 }, (_, piece) => {
    const { x, y } = line.getPointAtLength((whole * piece) / PIECES);
    return { transform: `translate(${x}px, ${y}px)` };
  });
}
