// Keeps the regions that `body[data-follow]` names as the server renders them now. They are reloaded when figures of any machine
// change, and now and then, since owners, requests and runs are in no live value. What is being filled in stays.

import { throttle } from "./fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { find, refresh } from "./regions.js";

const EVERY = 10_000; // ms
const BUSY = 3000; // ms, while something is under way
const regions = document.body.dataset.follow.split(" ");
const again = throttle(() => isWritten() || refresh(regions), BUSY);
let known = false;

connectPage().subscribe("overview", () => {
  if (known) again();
  known = true;
});
wait();

function wait() {
  setTimeout(() => {
    if (!isResting()) again();
    wait();
  }, document.querySelector("[data-running]") ? BUSY : EVERY);
}

/** Whether something is being typed in one of the regions, or a menu is open there. */
function isWritten() {
  const fields = regions.flatMap((name) => [...(find(document, name)?.querySelectorAll("input, textarea") ?? [])]);
  return document.querySelector(".more-actions[open]") !== null || fields.some((field) => field.value !== field.defaultValue);
}
