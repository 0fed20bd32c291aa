import { throttle } from "./fetcher.js";
import { live } from "./lamp.js";
import { isAsShown, putJob, shapeOf } from "./progress.js";
import { refresh } from "./regions.js";

const { jobPage, page } = document.body.dataset;
const gone = document.querySelector("[data-gone]");
const again = throttle(() => refresh(typed() ? TOLD : [...TOLD, "side"], page), 500);
const TOLD = ["head", "error", "timeline", "data"];
let known = "";

live().subscribe(`job:${jobPage}`, (value) => {
  gone.hidden = !value.gone;
  if (value.gone) return;
  putJob(jobPage, value);
  const shape = shapeOf(value);
  if (known ? known !== shape : !isAsShown(jobPage, value)) again();
  known = shape;
});

// A reason somebody has begun to type is not taken away; what cannot be done any more, the engine refuses.
function typed() {
  return [...document.querySelectorAll('[data-region="side"] input')].some((input) => input.value !== input.defaultValue);
}
