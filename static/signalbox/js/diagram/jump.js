// Jumps to a state of a large diagram by its name, or the beginning or any part of it.

import { READABLE } from "../../admin/zoom.js";

const LIT = 2500; // ms that the state found is marked

/** Enables the field of a frame, where the server rendered one. */
export function enableJump(frame, view) {
  const form = frame.closest(".panel")?.querySelector("[data-jump]");
  if (!form) return;
  const field = form.querySelector("input");
  const names = new Set([...form.querySelectorAll("option")].map(({ value }) => value));
  const jump = () => {
    const part = find(frame, field.value.trim());
    field.setCustomValidity(part || !field.value ? "" : "No state of that name is drawn. It may be collapsed.");
    if (part) {
      lead(frame, view, part);
      part.dispatchEvent(new Event("found", { bubbles: true }));
    } else form.reportValidity();
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    jump();
  });
  field.addEventListener("input", () => {
    field.setCustomValidity("");
    if (names.has(field.value)) jump(); // chosen from the list
  });
}

function find(frame, text) {
  const parts = [...frame.querySelectorAll(".state[data-state]")];
  const low = text.toLowerCase();
  const fits = [
    (name) => name === text,
    (name) => name.toLowerCase() === low,
    (name) => name.toLowerCase().startsWith(low),
    (name) => name.toLowerCase().includes(low),
  ];
  return text ? fits.map((fit) => parts.find(({ dataset }) => fit(dataset.state))).find(Boolean) : undefined;
}

/** Scrolls to a state in letters that can be read, marks it, and gives it the focus where it is a link. */
export function lead(frame, view, part) {
  if (view.scale < READABLE) view.zoom(1);
  const own = frame.getBoundingClientRect();
  const at = part.getBoundingClientRect();
  frame.scrollLeft += at.left + at.width / 2 - own.left - own.width / 2;
  frame.scrollTop += at.top + Math.min(at.height, own.height) / 2 - own.top - own.height / 2;
  part.scrollIntoView({ block: "nearest", inline: "nearest" }); // the frame itself may be below the screen
  part.classList.add("found");
  setTimeout(() => part.classList.remove("found"), LIT);
  if (part.localName === "a") part.focus({ preventScroll: true });
}
