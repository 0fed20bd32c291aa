// Shows warnings at states in every mode. dashboard/catalog/diagram_figures.py writes the same.

import { short } from "../shared/format.js";
import { putText } from "../shared/dom.js";

const WRONG = { late: ["▲", "over service level"], failing: ["✕", "in error"] };

/** Updates all warnings. `breaches`: state -> instances past its service level; `failing(state)`: instances in error there. */
export function putMarks(drawing, breaches, failing) {
  for (const mark of drawing.querySelectorAll(".mark[data-states]")) {
    const kind = mark.classList.contains("late") ? "late" : "failing";
    const { of } = mark.dataset;
    const states = JSON.parse(mark.dataset.states);
    const own = states.length === 1 && states[0] === of;
    const figure = (state) => (kind === "late" ? (breaches[state] ?? 0) : failing(state));
    const some = states.some((state) => figure(state) > 0);
    const [text, said] = some ? words(kind, of, own ? figure(of) : 0) : ["", ""];
    putText(mark, ".told", text);
    mark.classList.toggle("shown", some);
    if (said) mark.setAttribute("aria-label", said);
    else mark.removeAttribute("aria-label");
  }
}

// `number` is 0 for an unknown number of instances in folded states.
function words(kind, state, number) {
  const [sign, why] = WRONG[kind];
  if (!number) return [sign, `in ${state} (collapsed): some ${why}`];
  return [`${sign} ${short(number)}`, `${number.toLocaleString("en")} in ${state} ${why}`];
}
