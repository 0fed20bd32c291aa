// Draws one time series with uPlot in the page's colours. The legend shows the values under the cursor.

import { figure, span } from "../shared/format.js";

const DASHES = { "s-a": [], "s-b": [8, 4], "s-c": [2, 3], "s-d": [10, 3, 2, 3], "s-e": [4, 4], "s-f": [14, 3], "s-rest": [1, 4] };
const DAY = 86400; // s
const FONT = "11px system-ui, sans-serif";
const WHOLE = [1, 2, 5].flatMap((lead) => Array.from({ length: 12 }, (_, power) => lead * 10 ** power)).sort((a, b) => a - b);
const ALONE = 2; // isolated values at which points are drawn

/** Returns `draw(found, chart)`, which shows the numbers in `place`. */
export async function createPlot(place, zone) {
  const { default: UPlot } = await import("../../vendor/uplot/uPlot.min.js");
  const box = place.querySelector("[data-plot]");
  let picture = null;
  let now = null;

  function build() {
    picture?.destroy();
    picture = new UPlot(options(UPlot, place, box, zone, now), columns(now), box);
  }
  function draw(found, chart) {
    const shape = (seen) => JSON.stringify([seen?.chart.unit, seen?.found.step, seen?.chart.lines.map(({ name, shape: one }) => [name, one])]);
    const known = shape(now);
    now = { found, chart };
    if (!picture || shape(now) !== known) build();
    else picture.setData(columns(now));
  }
  new ResizeObserver(() => picture?.setSize(size(box))).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => now && build());
  return draw;
}

function columns({ found, chart }) {
  return [found.at, ...chart.lines.map(({ values }) => values)];
}

function size(box) {
  return { width: Math.max(200, box.clientWidth), height: box.clientHeight };
}

function options(UPlot, place, box, zone, { found, chart }) {
  const colour = (name) => getComputedStyle(place).getPropertyValue(name).trim();
  const [faint, rule] = [colour("--ink-faint"), colour("--rule")];
  const axis = { stroke: faint, font: FONT, grid: { stroke: rule, width: 1 }, ticks: { show: false } };
  return {
    ...size(box),
    padding: [8, 18, 0, 0],
    tzDate: (s) => UPlot.tzDate(new Date(s * 1000), zone),
    legend: { show: false },
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 7 } },
    scales: { x: { range: (_, low, high) => [low, high + found.step] }, y: { range: (_, __, high) => [0, Math.max(1, high || 0) * 1.08] } },
    axes: [
      { ...axis, values: (_, splits) => splits.map(clock(zone, found)), space: 56, size: 28 },
      { ...axis, values: (_, splits) => splits.map((value) => amount(value, chart.unit)), size: 52, space: 28, ...(chart.unit === "ms" ? {} : { incrs: WHOLE }) }, // a count has no tick at 0.3
    ],
    series: [{}, ...chart.lines.map((line) => series(line, colour))],
    hooks: { setCursor: [(picture) => tell(place, picture, chart)] },
  };
}

function series({ shape, values }, colour) {
  const stroke = colour(shape === "s-rest" ? "--ink-faint" : `--line-${shape.slice(2)}`);
  return { stroke, width: 2, dash: DASHES[shape], spanGaps: false, points: { show: points(values), size: 5, fill: stroke, stroke } };
}

// Draws points for few values and for values without a neighbour, which a line would not show.
function points(values) {
  const alone = (value, place) => value !== null && (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null;
  return values.filter((value) => value !== null).length <= 12 || values.filter(alone).length >= ALONE || values.some(alone);
}

function clock(zone, { step, at }) {
  const long = at.at(-1) - at[0] > 2 * DAY || step > 3600;
  const words = long ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const format = new Intl.DateTimeFormat("en-GB", { ...words, timeZone: zone });
  return (s) => format.format(new Date(s * 1000));
}

function amount(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "ms") return value === 0 ? "0" : span(value);
  return figure(value >= 10 ? Math.round(Number(value.toPrecision(3))) : Math.round(value * 10) / 10);
}

// Shows the values under the cursor; without a cursor the latest, as the server rendered them.
function tell(place, picture, chart) {
  const at = picture.cursor.idx;
  chart.lines.forEach((line, number) => {
    const output = place.querySelector(`[data-line="${number + 1}"] [data-value]`);
    if (!output) return;
    output.dataset.last ??= output.textContent;
    const text = at === null || at === undefined ? output.dataset.last : amount(line.values[at], chart.unit);
    if (output.textContent !== text) output.textContent = text;
  });
}
