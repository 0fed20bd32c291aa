// The slider that replays an instance's history. It says at once where it is; the server renders the rest.

import { throttle } from "../shared/fetcher.js";
import { address, openSheet, refresh } from "../shared/regions.js";

const BEAT = 900; // ms between two steps while it plays
const EDITABLE = "input:not([type=range]), textarea, select, [contenteditable], [data-diagram]";
const bar = document.querySelector("[data-replay]");
const slider = bar.elements.at;
const player = bar.querySelector("[data-play]");
let playing = null;

/** Starts the slider. `regions()`: what to reload for another moment; `arrived()` is called when it was. */
export function startReplay(regions, arrived) {
  const again = throttle(async () => {
    if (await refresh(regions(), address(), { late: true })) arrived(); // the diagram follows a slider that is dragged
  }, 150);

  function show(revision) {
    const known = readTrail();
    const moment = revision === null ? null : nearest(known, revision);
    const url = new URL(address(), location);
    url.searchParams.delete("before");
    if (moment) url.searchParams.set("at", moment.revision);
    else for (const term of ["at", "with"]) url.searchParams.delete(term);
    history.replaceState(null, "", url);
    say(moment, known);
    again();
  }

  function go(step) {
    const known = readTrail();
    const place = known.indexOf(nearest(known, readChosen() ?? Infinity)) + step;
    const moment = known[Math.max(0, place)];
    show(moment && place < known.length ? moment.revision : null);
  }

  function play() {
    const known = readTrail();
    if (playing) return stop();
    if (readChosen() === null || readChosen() === known.at(-1)?.revision) show(known[0]?.revision ?? null);
    player.textContent = "Pause";
    player.setAttribute("aria-pressed", "true");
    playing = setInterval(() => (readChosen() === null ? stop() : go(1)), BEAT);
  }

  player.addEventListener("click", play);
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value) >= Number(slider.max) ? null : Number(slider.value));
  });
  bar.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-go], [data-moment], [data-against]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    stop();
    const { go: way, moment, against } = link.dataset;
    if (against || link.closest("[data-region=past]")) link.blur();
    if (against) return compare(against, again);
    if (moment && moment !== "now" && link.closest("[data-region=past]")) return compare(null, again);
    if (moment) link.blur();
    if (way && way !== "now") return go(Number(way));
    show((moment ?? way) === "now" ? null : Number(moment));
    if (moment) slider.focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || openSheet()) return;
    if (event.target === slider || event.target.closest(EDITABLE)) return; // these use the arrow keys themselves
    event.preventDefault();
    stop();
    go(way);
  });
}

/** Adjusts the slider to the history after a reload, and keeps the chosen moment. */
export function settle() {
  const known = readTrail();
  bar.inert = known.length < 2;
  if (known.length === 0) return;
  slider.min = known[0].revision;
  slider.max = known.at(-1).revision;
  say(readChosen() === null ? null : nearest(known, readChosen()), known);
}

/** Returns the revision that is shown; null for the present one. */
export function readChosen() {
  const at = new URLSearchParams(location.search).get("at");
  return at ? Number(at) : null;
}

function compare(revision, again) {
  const url = new URL(address(), location);
  if (revision) url.searchParams.set("with", revision);
  else url.searchParams.delete("with");
  history.replaceState(null, "", url);
  again();
}

function readTrail() {
  return JSON.parse(document.getElementById("trail").textContent);
}

function nearest(known, revision) {
  return known.findLast((moment) => moment.revision <= revision) ?? known[0];
}

function say(moment, known) {
  const last = known.at(-1);
  slider.value = (moment ?? last).revision;
  const text = moment ? `revision ${moment.revision} · ${moment.words} → ${moment.state}` : `now · revision ${last.revision}`;
  bar.querySelector("[data-replay-text]").textContent = text;
  slider.setAttribute("aria-valuetext", text);
}

function stop() {
  clearInterval(playing);
  playing = null;
  player.textContent = "Play";
  player.setAttribute("aria-pressed", "false");
}
