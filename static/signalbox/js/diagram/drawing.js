// Figures of a machine's diagram. Counts and flow are written at once, from the live value; all else is copied from the diagram
// as the server draws it now: figures of the other modes and of a filter, colours, names and warnings.

import { putText } from "../shared/dom.js";
import { short } from "../shared/format.js";
import { showTravel } from "./pulses.js";

const SLOTS = ".count, .flow, .told";
const LOOKS = ["occupied", "dead", "shown", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5"];

/** Returns how many instances are in a state: of a compound state, the sum of the leaves that its element lists. */
export function countOf({ dataset }, counts) {
  const leaves = dataset.leaves ? JSON.parse(dataset.leaves) : [dataset.state];
  return leaves.reduce((all, leaf) => all + (counts[leaf] ?? 0), 0);
}

/** Lets what moves run along its line. `writes`: the diagram shows the counts of all instances, and gets those of the live
 *  value. `version`: of the diagram, since flow is counted by version: "3:t2". */
export function putLive(drawing, version, { counts, flow = {}, queues = {} }, writes) {
  for (const part of drawing.querySelectorAll("[data-transition]")) {
    const taken = part.dataset.transition.split(" ").reduce((all, id) => all + (flow[`${version}:${id}`] ?? 0), 0);
    showTravel(part, taken);
    if (writes) putText(part, ".flow", taken ? short(taken) : "");
  }
  if (!writes) return;
  for (const part of drawing.querySelectorAll(".state[data-state]")) putText(part, ".count", short(countOf(part, counts)));
  for (const part of drawing.querySelectorAll(".queue[data-queue]")) {
    putText(part, ".count", short(queues[part.dataset.queue]?.ready ?? 0));
  }
}

/** Copies figures, colours, names and warnings from another drawing of the same parts. */
export function copyFigures(drawing, fresh) {
  for (const part of fresh.querySelectorAll("[id]")) {
    const own = drawing.querySelector(`[id="${part.id}"]`);
    if (!own) continue;
    for (const look of LOOKS) own.classList.toggle(look, part.classList.contains(look));
    putText(own, SLOTS, part.querySelector(SLOTS)?.textContent ?? "", true);
    if (!part.matches(".state, .mark")) continue; // the name of a line is made of its title, when it is pointed at
    if (part.hasAttribute("aria-label")) own.setAttribute("aria-label", part.getAttribute("aria-label"));
    else own.removeAttribute("aria-label");
  }
}
