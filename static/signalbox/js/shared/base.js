// Runs on every page: updates ages, handles keyboard shortcuts, and submits a form once however often its button is pressed.

import "./ages.js";
import "./shortcuts.js";
import "./menu.js";
import { element } from "./dom.js";
import { send } from "./fetcher.js";
import { toast } from "./toasts.js";

document.querySelector("[data-scriptless]")?.remove();
if (document.body.dataset.follow) import("./following.js");

const AGAIN_AFTER = 8000; // ms; after that a form may be submitted again: its idempotency key makes it count once

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent && Date.now() - Number(form.dataset.sent) < AGAIN_AFTER) {
    event.preventDefault();
    return;
  }
  if (!event.defaultPrevented && form.getAttribute("method") === "post" && mayBeCutOff()) {
    event.preventDefault();
    sendIfReached(form, event.submitter);
    return;
  }
  form.dataset.sent = Date.now();
});

let reached = false; // the server answered, and the form is being sent again

// Only a live connection shows that the server is there: a page without one asks first.
function mayBeCutOff() {
  return !reached && (!navigator.onLine || document.querySelector("[data-live]")?.dataset.state !== "live");
}

// A form that is sent in vain would leave this page, with all that was entered, for the browser's own error. A proxy
// whose server is down answers, too, but not in JSON.
async function sendIfReached(form, submitter) {
  try {
    const answer = await send(document.body.dataset.healthz, { cache: "no-store", headers: { Accept: "application/json" } });
    await answer.json();
  } catch {
    sayUnsent(form);
    return;
  }
  form.querySelector("[data-unsent]")?.remove();
  reached = true;
  form.requestSubmit(submitter);
  reached = false;
}

let close = null; // closes the toast that said it before

// A toast would be below an open dialog: there the form says it.
function sayUnsent(form) {
  const text = "The server cannot be reached. Nothing was sent, and what you entered is still here.";
  close?.();
  if (!form.closest("[popover]")) {
    close = toast(text, { level: "stop" });
    return;
  }
  form.querySelector("[data-unsent]")?.remove();
  form.append(element("p", { className: "error", role: "alert", "data-unsent": "" }, text));
}

// A page restored from the browser's memory is out of date, and so are the revisions in its forms.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});

// Scroll the result of the last request into view.
document.querySelector(".notice[role=alert]:not(.toast)")?.scrollIntoView({ block: "nearest" });

// Offers the browser's time zone once to a person who has not chosen one.
const template = document.querySelector("template[data-zone-offer]");
const guess = Intl.DateTimeFormat().resolvedOptions().timeZone;

if (template && guess && guess !== document.body.dataset.zone && guess !== "Etc/UTC") {
  const offer = document.importNode(template.content, true);
  offer.querySelector("[data-guess]").textContent = guess.replaceAll("_", " ");
  const take = offer.querySelector("[data-take]");
  take.value = guess;
  take.textContent = `Use ${guess.replaceAll("_", " ")}`;
  document.body.append(offer);
}
