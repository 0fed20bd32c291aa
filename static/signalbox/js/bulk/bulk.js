import { throttle } from "../shared/fetcher.js";
import { connectPage } from "../live/indicator.js";
import { refresh } from "../shared/regions.js";

const { bulk, page } = document.body.dataset;
const REGIONS = ["head", "counts", "items"];
const again = throttle(() => refresh(typed() ? REGIONS : [...REGIONS, "actions"], page), 500);

connectPage().subscribe(`instance:bulk/${bulk}`, (value) => {
  const shown = document.querySelector("[data-shown-revision]").dataset.shownRevision;
  if (!value.gone && String(value.revision) !== shown) again();
});

// Keeps the actions while a reason is being typed.
function typed() {
  return [...document.querySelectorAll('[data-region="actions"] input')].some((input) => input.value !== input.defaultValue);
}
