// Toasts: short messages over the page. A success leaves by itself, but not while the pointer or the focus is on it; an
// error stays until it is closed. Messages of the server are rendered as toasts, which get their button and clock here.

import { element } from "./dom.js";

const STAYS = { info: 8000, ok: 8000, warn: 16_000 }; // ms; "stop" has no end
const SIGNS = { info: "◇", ok: "✓", warn: "▲", stop: "⊘" };
const PER_LETTER = 50; // ms more for each letter
const MOST = 5;

const stack = document.querySelector("[data-toasts]");

/** Shows a message. `level`: "info", "ok", "warn" or "stop"; `action`: {label, href} or {label, run}. Returns a function that closes it. */
export function toast(text, { level = "info", action } = {}) {
  const said = element("p", { className: "said" }, text);
  if (action) said.append(" ", button(action));
  const made = element("div", { className: `toast notice ${level}`, role: level === "stop" ? "alert" : "status" },
    element("span", { className: "sign", "aria-hidden": "true" }, SIGNS[level]), said);
  stack.append(made);
  for (const old of [...stack.querySelectorAll(".toast:not(.stop)")].slice(0, -MOST)) old.remove();
  return start(made);
}

function button({ label, href, run }) {
  if (href) return element("a", { href }, label);
  const made = element("button", { type: "button", className: "quiet" }, label);
  made.addEventListener("click", run);
  return made;
}

function start(made) {
  const level = Object.keys(STAYS).find((name) => made.classList.contains(name)) ?? (made.classList.contains("stop") ? "" : "info");
  const stays = level && STAYS[level] + made.textContent.length * PER_LETTER;
  let timer = null;
  const close = () => {
    clearTimeout(timer);
    if (made.contains(document.activeElement)) document.querySelector("#main").focus({ preventScroll: true });
    made.remove();
  };
  const hold = () => clearTimeout(timer);
  const go = () => {
    hold();
    if (stays && !document.hidden && !made.matches(":hover, :focus-within")) timer = setTimeout(close, stays);
  };
  const x = element("button", { type: "button", className: "close", "aria-label": "Close message" }, "×");
  x.addEventListener("click", close);
  made.append(x);
  for (const name of ["pointerenter", "focusin"]) made.addEventListener(name, hold);
  for (const name of ["pointerleave", "focusout"]) made.addEventListener(name, () => setTimeout(go));
  made.addEventListener("keydown", ({ key }) => key === "Escape" && close());
  document.addEventListener("visibilitychange", go);
  go();
  return close;
}

if (stack) {
  for (const made of stack.querySelectorAll(".toast")) start(made);
  // Notices that scripts show later must not push the page: those that are hidden yet appear among the toasts.
  for (const notice of document.querySelectorAll("main > [hidden]:is(.notice, .notices)")) stack.append(notice);
}
