import { live } from "./lamp.js";
import { center } from "./diagram.js";
import { refresh, throttled } from "./regions.js";

const { machine, instance, page } = document.body.dataset;
const REGIONS = ["head", "drawing", "held", "levers", "waiting", "jobs", "data", "history"];
const again = throttled(renew, 300);
const moved = document.querySelector("[data-moved]");
let latest = null;

center();

live().subscribe(`instance:${machine}/${instance}`, (value) => {
  latest = value;
  if (value.gone) return say("It was deleted while this page was open.");
  if (String(value.version) !== shown()) again();
});

function shown() {
  return document.querySelector("[data-shown-version]").dataset.shownVersion;
}

// A form somebody is filling in is never taken away: they are told, and the engine's check on the version does the rest.
async function renew() {
  if (latest.gone || String(latest.version) === shown()) return;
  if (typing()) {
    const names = REGIONS.filter((name) => name !== "levers");
    await refresh(names, pageUrl());
    center();
    return say(`It moved to ${latest.state} (version ${latest.version}) while you were typing.`);
  }
  if (!(await refresh(REGIONS, pageUrl()))) return;
  moved.hidden = true;
  center();
}

// Older steps stay older steps; an address that only takes a POST is left for the page itself.
function pageUrl() {
  return location.pathname === page ? location.href : page;
}

function typing() {
  const forms = document.querySelectorAll('[data-region="levers"] form');
  return [...forms].some((form) => form.contains(document.activeElement) || [...form.elements].some(touched));
}

function touched(element) {
  if (element.type === "hidden" || element.tagName === "BUTTON") return false;
  if (element.tagName === "SELECT") return [...element.options].some((option) => option.selected !== option.defaultSelected && option.index > 0);
  if (element.type === "checkbox") return element.checked !== element.defaultChecked;
  return element.value !== element.defaultValue;
}

function say(text) {
  moved.querySelector("[data-moved-text]").textContent = text;
  moved.hidden = false;
}
