// Shows the progress of a job wherever it is on the page.

import { exact, figure } from "../shared/format.js";
import { put } from "../shared/dom.js";

const latest = new Map(); // job -> its last value

/** Returns a listener that shows what changes all the time while a job runs: its progress and the end of its lease. When
 *  anything else of the job differs from the page, it calls `changed`. */
export function watchJob(route, changed) {
  let known = "";
  return (value) => {
    if (value.gone) return;
    putJob(route, value);
    const { progress: _, lease_until: __, ...rest } = value;
    const shape = JSON.stringify(rest);
    if (known ? known !== shape : !isAsShown(route, value)) changed();
    known = shape;
  };
}

function putJob(route, value) {
  latest.set(route, value);
  for (const part of document.querySelectorAll("[data-job]")) {
    if (part.dataset.job !== route) continue;
    for (const place of part.querySelectorAll("[data-progress]")) putProgress(place, value.progress);
  }
  if (value.lease_until) putLease(route, value.lease_until);
}

document.addEventListener("refreshed", () => latest.forEach((value, route) => putJob(route, value)));

/** Whether the page shows the job's current place and attempt. */
function isAsShown(route, { place, attempt }) {
  const parts = [...document.querySelectorAll("[data-job-is]")].filter(({ dataset }) => dataset.job === route);
  return parts.every(({ dataset }) => dataset.jobIs === `${place} ${attempt}`);
}

function putProgress(place, progress) {
  place.hidden = !progress;
  if (!progress) return;
  const { done, total, note } = progress;
  const bar = place.querySelector("progress");
  bar.hidden = !total;
  if (total) {
    bar.max = total;
    bar.value = done;
  }
  put(place.querySelector("[data-progress-text]"), total ? `${figure(done)} of ${figure(total)}` : `${figure(done)} done`);
  put(place.querySelector("[data-progress-note]"), note ?? "");
}

function putLease(route, until) {
  for (const time of document.querySelectorAll("[data-lease] time")) {
    const owner = time.closest("[data-job]");
    if (owner && owner.dataset.job !== route) continue;
    time.dataset.at = until;
    time.title = exact(until);
    time.dateTime = new Date(until).toISOString();
  }
}
