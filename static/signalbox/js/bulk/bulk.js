import { throttle } from "../shared/fetcher.js";
import { connectPage } from "../live/indicator.js";
import { find, isTyped, refresh } from "../shared/regions.js";

const { bulk, page } = document.body.dataset;
const REGIONS = ["head", "counts", "items"];
// Keeps the actions while a reason is being typed.
const again = throttle(() => refresh(isTyped(find(document, "actions")) ? REGIONS : [...REGIONS, "actions"], page), 500);

connectPage().subscribe(`instance:bulk/${bulk}`, (value) => {
  const shown = document.querySelector("[data-shown-revision]").dataset.shownRevision;
  if (!value.gone && String(value.revision) !== shown) again();
});
