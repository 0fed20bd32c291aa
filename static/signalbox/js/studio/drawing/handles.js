// The handles of a state in the diagram: one is dragged to another state, the other carries the state into another.

import { svgElement } from "../../shared/dom.js";

const RADIUS = 7;

/** Gives a state its handles. */
export function offerHandles(part) {
  const plate = part?.querySelector(":scope > .plate");
  if (!plate || part.querySelector(":scope > .handle")) return;
  const { x, y, width, height } = plate.getBBox();
  part.append(makeHandle("handle", x + width, y + height / 2, "Drag to another state: adds a transition"));
  part.append(makeHandle("handle grip", x, y + height / 2, "Drag into another state, or out of this one: moves it"));
}

function makeHandle(name, cx, cy, title) {
  const handle = svgElement("circle", { class: name, cx, cy, r: RADIUS });
  handle.append(Object.assign(svgElement("title", {}), { textContent: title }));
  return handle;
}

/** Draws what a handle is dragged to: a line, or the outline of the state. `drop(element, event)`: where it is let go. */
export function dragHandle(frame, event, drop) {
  event.stopPropagation();
  event.preventDefault();
  const { target, pointerId } = event;
  const svg = target.ownerSVGElement;
  const point = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
  const start = point(event);
  const shape = target.matches(".grip") ? target.parentNode.querySelector(":scope > .plate").cloneNode() : svgElement("line", { x1: start.x, y1: start.y });
  shape.setAttribute("class", "drawn");
  const put = (moved) => {
    const { x, y } = point(moved);
    if (shape.matches("line")) for (const [name, value] of [["x2", x], ["y2", y]]) shape.setAttribute(name, value);
    else shape.setAttribute("transform", `translate(${x - start.x} ${y - start.y})`);
  };
  put(event);
  svg.append(shape);
  frame.setPointerCapture(pointerId);
  const ended = new AbortController();
  const listen = (kind, act) => frame.addEventListener(kind, act, { signal: ended.signal });
  const end = () => (ended.abort(), shape.remove());
  listen("pointermove", put);
  listen("pointercancel", end);
  listen("pointerup", (up) => {
    end();
    setTimeout(() => drop(document.elementFromPoint(up.clientX, up.clientY), up)); // this event closes what it opens
  });
}
