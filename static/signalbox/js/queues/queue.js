import { serverTime } from "../shared/ages.js";
import { throttle } from "../shared/fetcher.js";
import { QueueFigures } from "./figures.js";
import { connectPage, isResting } from "../live/indicator.js";
import { changesIn } from "../shared/dom.js";
import { find, load, openSheet, refresh } from "../shared/regions.js";

const { queuePage, placeShown, page } = document.body.dataset;
const ABOUT = ["head", "limits"];
const WATCH = 2000; // ms between two requests while jobs report progress
const SELDOM = 5; // of these intervals while no job has reported progress
const SOON = 5000; // ms before a lease ends: it has probably been renewed
const connection = connectPage();
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

// Returns the counters and depths as text: it differs when jobs have moved.
function moves({ waits: _, runs: __, paused: ___, ...counts }) {
  return JSON.stringify(counts);
}

function list() {
  return find(document, "jobs");
}

// Whether the list is pointed at, focused or has an open sheet: its rows stay, and a notice says that the list has changed.
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

// Updates the cells that change while a job stays in its place.
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

// Live values of a queue contain neither progress nor leases.
setInterval(() => {
  if (placeShown !== "leased" || isResting()) return;
  looks += 1;
  const ends = [...list().querySelectorAll("[data-cell='lease'] time")].map(({ dataset }) => Number(dataset.at));
  const reported = list().querySelector("[data-progress]:not([hidden])");
  if (reported || ends.some((at) => at < serverTime() + SOON) || (ends.length && looks % SELDOM === 0)) again();
}, WATCH);
