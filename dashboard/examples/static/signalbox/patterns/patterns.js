// The Patterns page: reloads each visible section every two seconds. A form replaces its own section only.

import { send } from "../js/shared/fetcher.js";
import { connectPage, isResting } from "../js/live/indicator.js";
import { load } from "../js/shared/regions.js";
import { parseHtml } from "../js/shared/trusted_document.js";

const EVERY = 2000; // ms
const UNKNOWN = "The result is unknown: Redis or the server did not answer.";
const NOT_DONE = "Not done: reload the page.";

const inSight = new Set(); // names
const busy = new Set(); // names: a response is awaited
const sections = () => [...document.querySelectorAll("[data-pattern]")];
const sectionIn = (page) => page?.querySelector("[data-pattern]");
const named = (name) => sections().find(({ dataset }) => dataset.pattern === name);

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    inSight[isIntersecting ? "add" : "delete"](target.dataset.pattern);
  }
});

// Keeps the status element: screen readers announce a text that is written into an existing one.
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

// Returns the control of the new section with the same purpose; there may be more or fewer of them.
function sameAs(control, section) {
  const wanted = described(control);
  return controlsOf(section).find((other) => described(other) === wanted);
}

function described({ tagName, id, name, form, formAction, ariaLabel, textContent }) {
  return JSON.stringify([tagName, id, name, form?.action, formAction, ariaLabel, tagName === "SELECT" || textContent.trim()]);
}

// Whether a person has changed the field.
function isChosen(field) {
  if (field.tagName === "SELECT") return field.selectedIndex > 0 && !field.options[field.selectedIndex].defaultSelected;
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

function isOpen(section, { firstElementChild: summary }) {
  const texts = [...section.querySelectorAll("details[open] > summary")].map(({ textContent }) => textContent);
  return texts.includes(summary.textContent);
}

// Whether the section is in use: a focused field, an open part or a pressed button.
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
    const fresh = sectionIn(parseHtml(await response.text()));
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
  const again = event.defaultPrevented; // it is already being sent
  event.preventDefault();
  if (!again) submit(form, event.submitter);
});

connectPage();
for (const section of sections()) watcher.observe(section);
setInterval(() => isResting() || inSight.forEach(renew), EVERY);
