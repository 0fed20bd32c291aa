// Shows what a line means: event, states, guard and actions in words, while the pointer or the focus is on it. A click
// keeps it open, with a link to the instances that came by the line, or to its action on the page of an instance.

import { element } from "../shared/dom.js";

const AIR = 8; // pixels between the line's label and the box
const EDGE = ".edge.transition";
const box = element("div", { className: "edge-box", popover: "manual", id: "edge-box" });
let shown = null; // the line
let held = false; // a person clicked it
let placed = null; // what keeps the box in its place
let closing = false; // the focus goes back to the line, which does not open the box again

document.body.append(box);

/** Enables the box for the lines in a frame, also for those of a diagram that replaces the present one. */
export function enableEdges(frame) {
  frame.addEventListener("pointerover", ({ target, pointerType }) => pointerType === "mouse" && point(target.closest(EDGE)));
  frame.addEventListener("pointerleave", () => held || hide());
  frame.addEventListener("focusin", ({ target }) => target.closest(EDGE) && !held && !closing && show(target.closest(EDGE)));
  frame.addEventListener("focusout", () => held || hide());
  frame.addEventListener("scroll", hide);
  frame.addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches("g.transition") && choose(event, event.target));
  frame.addEventListener("click", (event) => choose(event, event.target.closest(EDGE)));
  document.addEventListener("redrawn", hide);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !shown) return;
  const line = shown;
  const inside = box.contains(document.activeElement);
  closing = true;
  hide();
  if (inside || document.activeElement === document.body) line.focus();
  closing = false;
});
document.addEventListener("pointerdown", ({ target }) => held && !box.contains(target) && !target.closest(EDGE) && hide());

function point(line) {
  if (held) return;
  if (line) show(line);
  else hide();
}

function choose(event, line) {
  if (!line || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const action = actionOf(line);
  if (action) return openAction(event, action);
  event.preventDefault(); // the box has the link
  show(line);
  held = true;
  box.querySelector("a")?.focus();
}

/** Returns the form of the line's event, on the page of an instance. */
function actionOf(line) {
  const href = line.getAttribute("href") ?? "";
  return href.startsWith("#") ? document.getElementById(href.slice(1)) : null;
}

function openAction(event, action) {
  event.preventDefault();
  hide();
  for (let around = action.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  action.scrollIntoView({ block: "center" });
  const first = action.querySelector("input:not([type=hidden]), select, textarea, button, summary") ?? action;
  first.focus({ preventScroll: true });
}

function show(line) {
  if (line === shown) return;
  if (shown) hide();
  shown = line;
  box.replaceChildren(...words(line), ...links(line));
  box.showPopover();
  place((line.querySelector(".ground") ?? line).getBoundingClientRect());
}

function hide() {
  if (!shown) return;
  shown = null;
  held = false;
  box.hidePopover();
}

// The browser's own tooltip would say the same: the title becomes the line's name.
function words(line) {
  const title = [...line.children].find(({ localName }) => localName === "title");
  if (title) {
    line.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const [head, ...rest] = (line.getAttribute("aria-label") ?? "").split("\n");
  return [element("b", {}, head), ...rest.map((text) => row(line, text))];
}

// Each of several transitions that are drawn as one line leads to its own instances, where the machine keeps these.
function row(line, text) {
  const version = line.closest("[data-edges]")?.dataset.edges;
  const several = line.dataset.transition.split(" ");
  const id = text.split(":", 1)[0];
  const url = new URL(line.getAttribute("href") ?? "", location.href);
  if (!version || several.length < 2 || !several.includes(id) || !line.dataset.target || !url.searchParams.has("state")) return element("p", {}, text);
  url.searchParams.set("edge", `${version}:${id}`);
  return element("p", {}, element("a", { href: url }, text));
}

function links(line) {
  const href = line.getAttribute("href");
  if (!href) return [];
  const edge = new URL(href, location.href).searchParams.has("edge");
  const text = actionOf(line) ? "Open its action" : edge ? "Instances that came by it" : "Instances in its target";
  return [element("a", { href }, text)];
}

// Below the label, or above it where there is no room.
function place(at) {
  const own = box.getBoundingClientRect();
  const below = at.bottom + AIR + own.height < innerHeight;
  const left = `${Math.max(AIR, Math.min(at.left, innerWidth - own.width - AIR))}px`;
  const top = `${Math.max(AIR, below ? at.bottom + AIR : at.top - AIR - own.height)}px`;
  placed?.cancel();
  placed = box.animate({ left: [left, left], top: [top, top] }, { duration: 1, fill: "forwards" }); // no inline style
}
