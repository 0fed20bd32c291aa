// The Patterns page: renews its sections every two seconds, but none with a field that a person has changed.

import { connectPage, isResting } from "../js/live/indicator.js";
import { refresh } from "../js/shared/regions.js";
import { throttle } from "../js/shared/fetcher.js";

const EVERY = 2000; // ms

const isChanged = (field) => field.selectedIndex > 0 || (field.defaultValue ?? field.value) !== field.value;
const isUnchanged = (section) => ![...section.querySelectorAll("input, select")].some(isChanged);

const again = throttle(async () => {
  if (isResting()) return;
  const sections = [...document.querySelectorAll("[data-region]")].filter(isUnchanged);
  await refresh(sections.map(({ dataset }) => dataset.region));
}, EVERY);

connectPage();
setInterval(again, EVERY);
