import { center } from "../diagram/frames.js";
import { throttle } from "../shared/fetcher.js";
import { connectPage } from "../live/indicator.js";
import { address, refresh } from "../shared/regions.js";
import { startReplay, settle } from "./replay.js";

const { machine, instance } = document.body.dataset;
const REGIONS = ["past", "head", "requests", "view", "caption", "drawing", "trail", "held", "actions", "actions-aside", "waiting", "jobs", "family", "data", "history"];
const again = throttle(renew, 300);
const moved = document.querySelector("[data-moved]");
let latest = null;

const connection = connectPage();
const followed = new Map(); // job -> function that ends its subscription
const FOLLOWED = 20; // jobs of one instance, at most
const rejob = throttle(async () => (await refresh(["jobs"], address())) && follow(), 1000);

center();
follow();
settle();
startReplay(() => (typing() ? besidesActions() : REGIONS), arrive);

// An archived instance does not change, and Redis knows nothing of it.
if (!("archived" in document.body.dataset)) {
  connection.subscribe(`instance:${machine}/${instance}`, (value) => {
    latest = value;
    if (value.gone) return say("The instance was deleted or archived while this page was open.");
    if (String(value.revision) !== readShownRevision()) again();
  });
}

function readShownRevision() {
  return document.querySelector("[data-shown-revision]").dataset.shownRevision;
}

// Reloads the page's regions, but keeps the actions while one of their forms is being filled in, and says so. The engine
// refuses a form with an old revision.
async function renew() {
  if (latest.gone || String(latest.revision) === readShownRevision()) return;
  if (typing()) {
    await refresh(besidesActions(), address());
    arrive();
    return say(`The instance moved to ${latest.state} (revision ${latest.revision}) while you were typing.`);
  }
  if (!(await refresh(REGIONS, address()))) return;
  moved.hidden = true;
  arrive();
}

// Another drawing is on the page, and perhaps other jobs.
function arrive() {
  settle();
  follow();
  center();
  document.dispatchEvent(new Event("redrawn"));
}

// Subscribes to the jobs that the instance waits for: they change without a step of the instance.
function follow() {
  const jobs = [...document.querySelectorAll("[data-job]")].map(({ dataset }) => dataset.job).slice(0, FOLLOWED);
  for (const [job, stop] of followed) {
    if (jobs.includes(job)) continue;
    stop();
    followed.delete(job);
  }
  for (const job of jobs) {
    if (!followed.has(job)) followed.set(job, connection.subscribe(`job:${job}`, rejob));
  }
}

function besidesActions() {
  return REGIONS.filter((name) => name !== "actions");
}

function typing() {
  const forms = document.querySelectorAll('[data-region="actions"] form');
  return [...forms].some((form) => form.contains(document.activeElement) || [...form.elements].some(isTouched));
}

function isTouched(element) {
  if (element.type === "hidden" || element.tagName === "BUTTON") return false;
  if (element.tagName === "SELECT") return [...element.options].some((option) => option.selected !== option.defaultSelected && option.index > 0);
  if (element.type === "checkbox") return element.checked !== element.defaultChecked;
  return element.value !== element.defaultValue;
}

function say(text) {
  moved.querySelector("[data-moved-text]").textContent = text;
  moved.hidden = false;
}
