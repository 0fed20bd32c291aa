// Formats figures, ages and names as the server does. tests/browser/rules/formats.json holds both to one table.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** Formats an age in two units at most: "45 s", "3 min", "2 h 5 min", "3 d 4 h", "45 d". */
export function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return two(Math.floor(whole / HOUR), "h", Math.floor((whole % HOUR) / MINUTE), "min");
  if (whole < 10 * DAY) return two(Math.floor(whole / DAY), "d", Math.floor((whole % DAY) / HOUR), "h");
  return `${Math.floor(whole / DAY)} d`;
}

function two(large, unit, small, part) {
  return small ? `${large} ${unit} ${small} ${part}` : `${large} ${unit}`;
}

/** Formats the time until a moment, given the seconds since it: "in 12 s", and "overdue 3 s" once it is past. */
export function until(seconds) {
  return seconds <= 0 ? `in ${age(-seconds)}` : `overdue ${age(seconds)}`;
}

/** Formats a duration: "<1 ms", "120 ms", "1.4 s", from ten seconds on like an age. */
export function span(ms) {
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  return ms < 10_000 ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : age(ms / 1000);
}

/** Formats a rate: "1,204 /s", "0.3 /s"; per minute below six a minute. */
export function perSecond(rate) {
  if (rate >= 10) return `${figure(Math.round(rate))} /s`;
  if (rate >= 0.1 || rate === 0) return `${rate === 0 ? 0 : rate.toFixed(1)} /s`;
  return `${(rate * 60).toFixed(1)} /min`;
}

/** Formats a number as 12,345 in every language. */
export function figure(number) {
  return number.toLocaleString("en-US");
}

/** Formats a number in at most seven characters: "12,345", "345k", "1.2M". */
export function short(number) {
  for (const [least, unit, letter] of [[999_500_000, 1e9, "G"], [999_500, 1e6, "M"], [99_999.5, 1e3, "k"]]) {
    if (number >= least) {
      const scaled = number / unit;
      return `${scaled < 10 ? scaled.toFixed(1) : figure(Math.round(scaled))}${letter}`;
    }
  }
  return figure(number);
}

/** Encodes an instance's id or a key for a path. Characters that no path segment can hold are written with a tilde. */
export function segment(text) {
  return encodeURIComponent(text.replaceAll("~", "~7E").replaceAll("/", "~2F").replace(/^\./, "~2E"));
}

const ZONE = globalThis.document?.body?.dataset.zone;
const HALF = globalThis.document?.body?.dataset.clock === "12";
let parts = null; // made once, since making it is expensive

/** Formats a moment in the person's time zone and clock: "21 Nov 2026, 03:22:03 UTC+1". */
export function moment(ms) {
  parts ??= new Intl.DateTimeFormat("en-US", {
    timeZone: ZONE, day: "numeric", month: "short", year: "numeric", timeZoneName: "shortOffset",
    hour: HALF ? "numeric" : "2-digit", minute: "2-digit", second: "2-digit", hourCycle: HALF ? "h12" : "h23",
  });
  const at = Object.fromEntries(parts.formatToParts(ms).map(({ type, value }) => [type, value]));
  const half = HALF ? ` ${at.dayPeriod.toLowerCase()}` : "";
  const offset = at.timeZoneName.replace(/^GMT(\+0$)?/, "UTC");
  return `${at.day} ${at.month} ${at.year}, ${at.hour}:${at.minute}:${at.second}${half} ${offset}`;
}

/** Formats the time of day of a moment in the person's time zone and clock: "03:22:03". */
export function timeOfDay(ms) {
  return moment(ms).split(", ")[1].split(" UTC")[0];
}

/** Formats a moment in UTC, for titles: "2026-11-21 02:22:03 UTC". */
export function exact(ms) {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
