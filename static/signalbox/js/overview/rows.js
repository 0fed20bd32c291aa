// Keeps the machines of the overview up to date where they stand: an order that changes waits for a click.

import { countOf } from "../diagram/drawing.js";
import { put, putCount } from "../shared/dom.js";
import { figure } from "../shared/format.js";

const WIDTH = 100; // of the bar of states

/** Writes live counts into the row of a machine. */
export function putMachine(name, { counts, total }) {
  const row = rowsOf(document).get(name);
  if (!row) return;
  put(row.querySelector("[data-total]"), figure(total));
  const bar = [...row.querySelectorAll("rect[data-state]")];
  const all = bar.reduce((sum, part) => sum + countOf(part, counts), 0) || 1;
  let x = 0;
  for (const part of bar) {
    const width = (WIDTH * countOf(part, counts)) / all;
    part.setAttribute("x", x.toFixed(2));
    part.setAttribute("width", width.toFixed(2));
    x += width;
  }
  for (const block of row.querySelectorAll(".block[data-state]")) {
    const wasEmpty = block.classList.contains("none");
    putCount(block.querySelector("[data-count]"), countOf(block, counts));
    if (!wasEmpty) block.classList.remove("none"); // stays as 0, and a new one comes last: nothing moves under the pointer
    else if (!block.classList.contains("none")) block.classList.add("new");
  }
  const shown = [...row.querySelectorAll(".tip > span")].map((block) => block.textContent.trim().replace(/\s+/g, " "));
  row.querySelector(".bar-of-states")?.setAttribute("aria-label", `states of ${name}: ${shown.join(", ")}`);
}

/** Replaces each machine in `old` by the same one in `fresh`, where it stands. `grows`: new machines are added at the end.
 *  Returns false if one of them lists nothing. */
export function updateRows(old, fresh, grows) {
  const [held, wanted] = [rowsOf(old), rowsOf(fresh)];
  if (!held.size || !wanted.size) return false;
  for (const [name, row] of wanted) {
    const place = held.get(name);
    if (place?.contains(document.activeElement)) continue;
    if (place) place.replaceWith(document.importNode(row, true));
    else if (grows) [...rowsOf(old).values()].at(-1).after(document.importNode(row, true));
  }
  const moved = [...rowsOf(old).keys()].join("\n") !== [...wanted.keys()].join("\n");
  const button = old.querySelector("[data-new-order]");
  if (button) button.hidden = !moved;
  return true;
}

function rowsOf(root) {
  return new Map([...root.querySelectorAll("[data-machine]")].map((row) => [row.dataset.machine, row]));
}
