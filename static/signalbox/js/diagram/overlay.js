// Writes figures, heat and flow into a diagram. dashboard/catalog/diagram.py writes the same into the page it renders.

import { putText } from "../shared/dom.js";
import { showTravel } from "./pulses.js";

/** Returns how many instances are in a state: of a compound state, the sum of the leaves that its element lists. */
export function countOf({ dataset }, counts) {
  const leaves = dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
  return leaves.reduce((all, leaf) => all + (counts[leaf] ?? 0), 0);
}

/** Returns how often a line was taken: the sum of the transitions that it stands for. */
export function takenOf({ dataset }, flow) {
  return dataset.transition.split(" ").reduce((all, id) => all + (flow[id] ?? 0), 0);
}

/** Shows one mode in a diagram. `state`, `edge` and `queue` return {text, heat, still} for an element of that kind; a
 *  reading that changes all the time is `still`: it does not flash. `name` returns the accessible name of a state. */
export function putDrawing(drawing, { state, edge, queue, name }, { counts, flow, queues }) {
  for (const part of drawing.querySelectorAll(".state[data-state]")) {
    const reading = state(part);
    putReading(part, ".count", reading);
    if (part.getAttribute("aria-label") !== name(part, reading)) part.setAttribute("aria-label", name(part, reading));
    part.classList.toggle("occupied", countOf(part, counts) > 0);
  }
  for (const part of drawing.querySelectorAll("[data-transition]")) {
    putReading(part, ".flow", edge(part));
    showTravel(part, takenOf(part, flow));
  }
  for (const part of drawing.querySelectorAll(".queue[data-queue]")) {
    const held = queues[part.dataset.queue] ?? {};
    putReading(part, ".count", queue(held));
    part.classList.toggle("occupied", (held.ready ?? 0) > 0);
    part.classList.toggle("dead", (held.dead ?? 0) > 0);
  }
}

function putReading(part, slot, { text, heat = 0, still = false }) {
  putText(part, slot, text, still);
  for (let step = 1; step <= 5; step += 1) part.classList.toggle(`heat-${step}`, step === heat);
}
