import { throttle } from "../shared/fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { isAsShown, putJob, shapeOf } from "./progress.js";
import { refresh } from "../shared/regions.js";

const { jobPage, page } = document.body.dataset;
const gone = document.querySelector("[data-gone]");
const again = throttle(() => refresh(["head", "error", "timeline", "data", "output", "side"], page), 500);
const OUTPUT = 2000; // ms between two looks at what the handler has said meanwhile
let known = "";

connectPage().subscribe(`job:${jobPage}`, (value) => {
  gone.hidden = !value.gone;
  if (value.gone) return;
  putJob(jobPage, value);
  const shape = shapeOf(value);
  if (known ? known !== shape : !isAsShown(jobPage, value)) again();
  known = shape;
});

setInterval(() => {
  if (!isResting() && gone.hidden && document.querySelector('.head [data-in="leased"]')) refresh(["output"], page);
}, OUTPUT);
