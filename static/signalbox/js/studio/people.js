// Who else edits this machine: each page says so every few seconds, and hears of the others.

import { send, sendLast } from "../shared/fetcher.js";
import { headers } from "./checker.js";

const EVERY = 15_000; // ms; the server forgets who is silent for 45 s

export function watchPeople(form, drafts) {
  const place = document.querySelector("[data-others]");
  const text = place.querySelector("[data-others-text]");

  async function tell() {
    if (document.hidden || !form.dataset.machine) return;
    try {
      const response = await send(address(""), { method: "POST", headers: headers() });
      if (response.ok && !response.redirected) show(await response.json());
    } catch {
      // the next round asks again
    }
  }

  function address(more) {
    const { edit, machine, draft } = form.dataset;
    return `${edit.replace("NAME", machine)}presence/?${new URLSearchParams({ draft: draft ?? "" })}${more}`;
  }

  function show({ others, draft, current }) {
    const lines = others.length ? [`${others.map(name).join(", ")} ${others.length > 1 ? "edit" : "edits"} this machine, too`] : [];
    if (draft && String(draft.id) === form.dataset.draft && draft.revision > Number(form.dataset.revision)) {
      lines.push(`${draft.editor || "somebody"} saved a newer text of this draft${drafts.dirty ? "" : ": reload to see it"}`);
    }
    if (current && form.dataset.current && String(current) !== form.dataset.current) lines.push(`version ${current} was published meanwhile`);
    const words = lines.join(" · ");
    place.hidden = !words;
    if (text.textContent.trim() !== words) text.textContent = words;
  }

  function name({ who, draft }) {
    return draft ? `${who} (draft ${draft})` : who;
  }

  tell();
  setInterval(tell, EVERY);
  document.addEventListener("visibilitychange", tell);
  addEventListener("pagehide", () => {
    if (form.dataset.machine) sendLast(address("&leave=1"), { method: "POST", headers: headers() });
  });
}
