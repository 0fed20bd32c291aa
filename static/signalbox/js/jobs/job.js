import { throttle } from "../shared/fetcher.js";
import { connectPage } from "../live/indicator.js";
import { isAsShown, putJob, shapeOf } from "./progress.js";
import { refresh } from "../shared/regions.js";

const { jobPage, page } = document.body.dataset;
const gone = document.querySelector("[data-gone]");
const again = throttle(() => refresh(typed() ? REGIONS : [...REGIONS, "side"], page), 500);
const REGIONS = ["head", "error", "timeline", "data"];
let known = "";

connectPage().subscribe(`job:${jobPage}`, (value) => {
  gone.hidden = !value.gone;
  if (value.gone) return;
  putJob(jobPage, value);
  const shape = shapeOf(value);
  if (known ? known !== shape : !isAsShown(jobPage, value)) again();
  known = shape;
});

// Keeps the actions while a reason is being typed. The engine refuses one that is no longer possible.
function typed() {
  return [...document.querySelectorAll('[data-region="side"] input')].some((input) => input.value !== input.defaultValue);
}
