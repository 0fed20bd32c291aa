import { throttle } from "../shared/fetcher.js";
import { connectPage, isResting } from "../live/indicator.js";
import { watchJob } from "./progress.js";
import { refresh } from "../shared/regions.js";

const { jobPage, page } = document.body.dataset;
const gone = document.querySelector("[data-gone]");
const again = throttle(() => refresh(["head", "error", "timeline", "data", "output", "side"], page), 500);
const OUTPUT = 2000; // ms between two looks at what the handler has said meanwhile
const show = watchJob(jobPage, again);

connectPage().subscribe(`job:${jobPage}`, (value) => {
  gone.hidden = !value.gone;
  show(value);
});

setInterval(() => {
  if (!isResting() && gone.hidden && document.querySelector('.head [data-in="leased"]')) refresh(["output"], page);
}, OUTPUT);
