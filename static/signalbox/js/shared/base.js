// Runs on every page: updates ages, handles keyboard shortcuts, and submits a form once however often its button is pressed.

import "./ages.js";
import "./shortcuts.js";
import "./menu.js";
import "./toasts.js";

document.querySelector("[data-scriptless]")?.remove();

const AGAIN_AFTER = 8000; // ms; after that a form may be submitted again: its idempotency key makes it count once

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent && Date.now() - Number(form.dataset.sent) < AGAIN_AFTER) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = Date.now();
});

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
