import { throttle } from "./fetcher.js";
import { live } from "./lamp.js";
import { refresh } from "./regions.js";

const { bulk, page } = document.body.dataset;
const REGIONS = ["head", "counts", "items"];
const again = throttle(() => refresh(typed() ? REGIONS : [...REGIONS, "levers"], page), 500);

live().subscribe(`instance:bulk/${bulk}`, (value) => {
  const shown = document.querySelector("[data-shown-version]").dataset.shownVersion;
  if (!value.gone && String(value.version) !== shown) again();
});

// A reason somebody has begun to type is not taken away.
function typed() {
  return [...document.querySelectorAll('[data-region="levers"] input')].some((input) => input.value !== input.defaultValue);
}
