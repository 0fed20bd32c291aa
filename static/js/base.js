// On every page: ages tick, keys work, and a form is sent once however often its button is pressed.

import "./ages.js";
import "./keys.js";
import "./menu.js";
import "./zone.js";

const AGAIN_AFTER = 8000; // ms; an answer that takes longer may be asked for again, its key makes it count once

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent && Date.now() - Number(form.dataset.sent) < AGAIN_AFTER) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = Date.now();
});

// A page that comes back out of the browser's memory is old, and so are the versions in its forms.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});

// Bring what was just tried into view, and tell those who hear the page.
document.querySelector(".notice[role=alert]")?.scrollIntoView({ block: "nearest" });
