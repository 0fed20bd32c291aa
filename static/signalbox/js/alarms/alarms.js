// Reloads the lists when figures of any machine change, and now and then: owners and snoozes are in no live value. A form that
// is being filled in stays.

import { throttle } from "../shared/fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { refresh } from "../shared/regions.js";

const EVERY = 10000; // ms
const again = throttle(() => isWritten() || refresh(["open", "snoozed"]), 3000);
let known = false;

connectPage().subscribe("overview", () => {
  if (known) again();
  known = true;
});
setInterval(() => isResting() || again(), EVERY);

/** Whether a reason or an owner is being typed. */
function isWritten() {
  return document.querySelector(".more-actions[open]") !== null;
}
