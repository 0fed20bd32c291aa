// The Patterns page: each section in sight is asked for anew every two seconds, and a form is answered by its section alone.

import { send } from "../js/fetcher.js";
import { live, resting } from "../js/lamp.js";
import { load } from "../js/regions.js";
import { parsed } from "../js/trusted.js";

const EVERY = 2000; // ms
const UNKNOWN = "The result is unknown: Redis or the server did not answer.";
const NOT_DONE = "Not done: reload the page.";

const inSight = new Set(); // names
const busy = new Set(); // names: an answer is awaited
const sections = () => [...document.querySelectorAll("[data-pattern]")];
const sectionIn = (page) => page?.querySelector("[data-pattern]");
const named = (name) => sections().find(({ dataset }) => dataset.pattern === name);

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    inSight[isIntersecting ? "add" : "delete"](target.dataset.pattern);
  }
});

// What is told stays, and its element with it: a status that is filled in after it stands there is read out.
function put(old, fresh) {
  const element = document.importNode(fresh, true);
  const held = controlsOf(old).find((control) => control === document.activeElement);
  for (const field of fieldsOf(old).filter(isChosen)) {
    Object.assign(sameAs(field, element) ?? {}, { value: field.value, checked: field.checked });
  }
  for (const details of element.querySelectorAll("details")) details.open = isOpen(old, details);
  element.querySelector(".told").replaceWith(old.querySelector(".told"));
  watcher.unobserve(old);
  old.replaceWith(element);
  watcher.observe(element);
  if (held) sameAs(held, element)?.focus({ preventScroll: true });
}

const fieldsOf = (section) => [...section.querySelectorAll("input:not([type=hidden]), select, textarea")];
const controlsOf = (section) => [...section.querySelectorAll("a, button, summary"), ...fieldsOf(section)];

// The control of the new section that does what this one did; their number may be another one.
function sameAs(control, section) {
  const wanted = described(control);
  return controlsOf(section).find((other) => described(other) === wanted);
}

function described({ tagName, id, name, form, formAction, ariaLabel, textContent }) {
  return JSON.stringify([tagName, id, name, form?.action, formAction, ariaLabel, tagName === "SELECT" || textContent.trim()]);
}

// By hand, and other than it was given.
function isChosen(field) {
  if (field.tagName === "SELECT") return field.selectedIndex > 0 && !field.options[field.selectedIndex].defaultSelected;
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

function isOpen(section, { firstElementChild: summary }) {
  const texts = [...section.querySelectorAll("details[open] > summary")].map(({ textContent }) => textContent);
  return texts.includes(summary.textContent);
}

// Somebody is reading or writing there, or has a button pressed.
function isUsed(section) {
  return fieldsOf(section).includes(document.activeElement) || section.querySelector("details[open], :active") !== null;
}

async function renew(name) {
  if (busy.has(name) || isUsed(named(name))) return;
  const fresh = sectionIn(await load(named(name).dataset.url));
  if (fresh && !busy.has(name) && !isUsed(named(name))) put(named(name), fresh);
}

async function submit(form, button) {
  const { pattern: name } = form.closest("[data-pattern]").dataset;
  busy.add(name);
  try {
    const body = new FormData(form, button);
    const address = button?.hasAttribute("formaction") ? button.formAction : form.action;
    const response = await send(address, { method: "POST", body, headers: { "X-Section": name, Accept: "text/html" } });
    const fresh = sectionIn(parsed(await response.text()));
    if (!fresh) return say(name, response.status === 403 ? NOT_DONE : UNKNOWN);
    const told = [...fresh.querySelector(".told").childNodes];
    put(named(name), fresh);
    tell(name, told);
  } catch {
    say(name, UNKNOWN);
  } finally {
    busy.delete(name);
    delete form.dataset.sent;
  }
}

function tell(name, nodes) {
  named(name).querySelector(".told").replaceChildren(...nodes.map((node) => document.importNode(node, true)));
}

function say(name, text) {
  const paragraph = document.createElement("p");
  paragraph.className = "bad";
  paragraph.textContent = text;
  tell(name, [paragraph]);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.closest("[data-pattern]") || form.method !== "post") return;
  const again = event.defaultPrevented; // it is under way
  event.preventDefault();
  if (!again) submit(form, event.submitter);
});

live();
for (const section of sections()) watcher.observe(section);
setInterval(() => resting() || inSight.forEach(renew), EVERY);
