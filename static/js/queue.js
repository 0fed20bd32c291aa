import { serverTime } from "./ages.js";
import { throttle } from "./fetcher.js";
import { QueueFigures } from "./figures.js";
import { live, resting } from "./lamp.js";
import { changesIn } from "./paint.js";
import { find, load, openSheet, refresh } from "./regions.js";

const { queuePage, placeShown, page } = document.body.dataset;
const ABOUT = ["head", "limits"];
const WATCH = 2000; // ms between two looks at jobs that say how far they are
const SELDOM = 5; // of these, for jobs that have said nothing so far
const SOON = 5000; // ms before a lease ends: it was probably renewed since
const connection = live();
const figures = new QueueFigures(connection);
const changed = document.querySelector("[data-changed]");
const again = throttle(relist, 1000);
const about = throttle(() => refresh(ABOUT, page), 1000);
let listed = "";
let rules = "";
let looks = 0;

connection.subscribe(`queue:${queuePage}`, (value, meta) => {
  if (value.gone) return;
  const differs = changesIn(() => figures.show({ [queuePage]: value }, meta));
  const [held, now] = [JSON.stringify([value.paused, value.concurrency, value.rate]), moves(value)];
  if (rules ? rules !== held : differs) about();
  if (listed ? listed !== now : differs) again();
  [rules, listed] = [held, now];
});

// What has happened to the queue's jobs, so far as it can be seen from how many are where.
function moves({ waits: _, runs: __, paused: ___, ...counts }) {
  return JSON.stringify(counts);
}

function list() {
  return find(document, "jobs");
}

// Rows do not move under a hand: while somebody points at the list or has reached into it, it says that it has changed.
function busy() {
  const pointed = matchMedia("(hover: hover)").matches && list().querySelector("table:hover");
  return pointed || openSheet(list()) || list().contains(document.activeElement);
}

async function relist() {
  const fresh = find((await load(page)) ?? document, "jobs");
  if (!fresh || fresh === list()) return;
  const moved = ids(fresh) !== ids(list());
  if (!busy()) return show(fresh);
  if (moved) changed.hidden = false;
  putCells(fresh);
}

function show(fresh) {
  list().replaceWith(document.importNode(fresh, true));
  changed.hidden = true;
}

function ids(root) {
  return [...root.querySelectorAll("tr[data-job]")].map(({ dataset }) => dataset.job).join();
}

// The cells that change while a job stays where it is.
function putCells(fresh) {
  for (const cell of list().querySelectorAll("tr[data-job] [data-cell]")) {
    const row = cell.closest("tr").dataset.job;
    const other = fresh.querySelector(`tr[data-job="${row}"] [data-cell="${cell.dataset.cell}"]`);
    if (other) cell.replaceChildren(...document.importNode(other, true).childNodes);
  }
}

changed.querySelector("[data-show-now]").addEventListener("click", async () => {
  const fresh = find((await load(page)) ?? document, "jobs");
  if (fresh && fresh !== list()) show(fresh);
});
document.addEventListener("toggle", ({ newState }) => newState === "closed" && (about(), again()), true);

// Counts say nothing of how far a job is, nor that its lease was renewed.
setInterval(() => {
  if (placeShown !== "leased" || resting()) return;
  looks += 1;
  const ends = [...list().querySelectorAll("[data-cell='lease'] time")].map(({ dataset }) => Number(dataset.at));
  const told = list().querySelector("[data-progress]:not([hidden])");
  if (told || ends.some((at) => at < serverTime() + SOON) || (ends.length && looks % SELDOM === 0)) again();
}, WATCH);
