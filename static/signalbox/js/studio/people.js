// Who else edits this machine, and where: each page says so when its cursor gets to another line, and now and then; the live
// view tells when another page did.

import { connectPage } from "../live/indicator.js";
import { send, sendLast, throttle } from "../shared/fetcher.js";
import { headers } from "./checker.js";

const EVERY = 15_000; // ms; the server forgets who is silent for 45 s
const MOVED = 1000; // ms between two lines that are sent

/** `where()`: the `line` and the `state` of the cursor; `mark(others)` shows theirs. Returns what is called when it moves. */
export function watchPeople(form, drafts, where, mark) {
  const place = document.querySelector("[data-others]");
  const text = place.querySelector("[data-others-text]");
  let sent = "";
  let edited = 0;

  async function tell() {
    if (document.hidden || !form.dataset.machine) return;
    const now = where();
    sent = String(now.line);
    try {
      const response = await send(address(now), { method: "POST", headers: headers() });
      if (response.ok && !response.redirected) show(await response.json());
    } catch {
      // the next round asks again
    }
  }

  function address(more) {
    const { edit, machine, draft } = form.dataset;
    return `${edit.replace("NAME", machine)}presence/?${new URLSearchParams({ draft: draft ?? "", ...more })}`;
  }

  function show({ others, draft, current }) {
    mark(others);
    const lines = others.length ? [`${others.map(name).join(", ")} ${others.length > 1 ? "edit" : "edits"} this machine, too`] : [];
    if (draft && String(draft.id) === form.dataset.draft && draft.revision > Number(form.dataset.revision)) {
      lines.push(`${draft.editor || "another author"} saved a newer text of this draft${drafts.dirty ? "" : ": reload to see it"}`);
    }
    if (current && form.dataset.current && String(current) !== form.dataset.current) lines.push(`version ${current} was published meanwhile`);
    const words = lines.join(" · ");
    place.hidden = !words;
    if (text.textContent.trim() !== words) text.textContent = words;
  }

  function name({ who, draft, line, state }) {
    const facts = [draft && `draft ${draft}`, line && `line ${line}`, state && `state ${state}`].filter(Boolean);
    return facts.length ? `${who} (${facts.join(", ")})` : who;
  }

  tell();
  setInterval(tell, EVERY);
  document.addEventListener("visibilitychange", tell);
  addEventListener("pagehide", () => {
    if (form.dataset.machine) sendLast(address({ leave: 1 }), { method: "POST", headers: headers() });
  });
  if (form.dataset.current) {
    connectPage().subscribe(`machine:${form.dataset.machine}`, (value) => {
      if (value.edited && value.edited !== edited) tell();
      edited = value.edited;
    });
  }
  return throttle(() => String(where().line) !== sent && tell(), MOVED);
}
