// The wall screen: asks for the page again when something changes and by the clock, says when its figures are old, and
// shows machines in turns where they do not fit.

import "../shared/ages.js";
import { connect } from "../live/client.js";
import { throttle } from "../shared/fetcher.js";
import { age } from "../shared/format.js";
import { find, load } from "../shared/regions.js";

const EVERY = 10_000; // ms between two readings while nothing changes, and where there is no socket
const STALE = 30_000; // ms without an answer
const TURN = 12_000; // ms for which one page of machines is shown

let good = performance.now(); // when figures last came
let first = 0; // the machine that this turn begins with
let state = "offline";

const again = throttle(renew, 2000);

async function renew() {
  const fresh = await load(location.href);
  const wall = fresh && find(fresh, "wall");
  if (!wall) return;
  find(document, "wall").replaceWith(document.importNode(wall, true));
  good = performance.now();
  lay();
  tell();
}

function tell() {
  const waited = performance.now() - good;
  const stale = waited > STALE;
  document.body.classList.toggle("stale", stale);
  const text = stale ? `figures are ${age(waited / 1000)} old` : "";
  const cover = document.querySelector(".stale-cover span");
  if (stale && cover.textContent !== text) cover.textContent = text;
  const said = stale ? "Stale" : state === "live" ? "Live" : `Live, every ${EVERY / 1000} s`;
  const place = document.querySelector("[data-wall-status]");
  if (place.textContent !== said) place.textContent = said;
}

// Shows the machines from `first` on that fit; the others wait for their turn.
function lay() {
  const list = document.querySelector(".tiles");
  const tiles = [...list.children];
  if (first >= tiles.length) first = 0;
  tiles.forEach((tile, place) => { tile.hidden = place < first; });
  const end = list.getBoundingClientRect().bottom;
  const fits = tiles.filter((tile) => !tile.hidden && tile.getBoundingClientRect().bottom <= end + 1).length || 1;
  const cut = getComputedStyle(list).overflowY === "hidden";
  if (cut) tiles.forEach((tile, place) => { tile.hidden = place < first || place >= first + fits; });
  const last = cut ? Math.min(tiles.length, first + fits) : tiles.length;
  const whole = first === 0 && last === tiles.length;
  document.querySelector("[data-wall-page]").textContent = whole ? "" : `machines ${first + 1}–${last} of ${tiles.length}`;
  return last;
}

function turn() {
  const last = lay();
  if (last - first < document.querySelector(".tiles").children.length) {
    first = last >= document.querySelector(".tiles").children.length ? 0 : last;
    lay();
  }
}

const live = connect();
live.subscribe("overview", () => again());
live.onstatus((now) => {
  state = now.state;
  tell();
});
setInterval(() => document.hidden || again(), EVERY);
setInterval(turn, TURN);
setInterval(tell, 1000);
addEventListener("resize", lay);
document.addEventListener("visibilitychange", () => document.hidden || again());
lay();
tell();
