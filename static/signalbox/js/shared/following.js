// Keeps the regions that `body[data-follow]` names as the server renders them now. They are reloaded when the live topic of the
// page changes, else when figures of any machine do, and now and then, since owners, requests and runs are in no live value. A
// region that is being filled in stays, and so does one with a form that was refused: the server has its text and its mistake in
// that one answer alone.

import { throttle } from "./fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { isTyped, refresh } from "./regions.js";

const EVERY = 10_000; // ms
const BUSY = 3000; // ms, while something is under way
const OWN = 1000; // ms, between two changes of the page's own topic
const { follow, page, topic } = document.body.dataset; // `page`: its address where this one took a form, and leads away when it is read
const regions = follow.split(" ");
const gone = document.querySelector("[data-gone]"); // what the page says once what it shows is no longer there
const again = throttle((signal) => (isThere() ? refresh(regions, page, { signal, stays: isWritten }) : null), topic ? OWN : BUSY);
let known = false;

connectPage().subscribe(topic ?? "overview", (value) => {
  if (gone) gone.hidden = !value.gone;
  const shown = document.querySelector("[data-shown-revision]")?.dataset.shownRevision;
  if (known || (topic && shown !== String(value.revision))) again();
  known = true;
});
wait();

function wait() {
  setTimeout(() => {
    if (!isResting()) again();
    wait();
  }, document.querySelector("[data-running]") ? BUSY : EVERY);
}

function isThere() {
  return gone?.hidden ?? true;
}

/** Whether something is being typed in the region, a menu is open there, or a form there was refused. */
function isWritten(region) {
  return region.querySelector(".more-actions[open], form .error") || isTyped(region);
}
