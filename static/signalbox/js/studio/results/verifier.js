// The tab Verify: what the machine can never do and never should, with the runs that show it. The text is sent when the tab is
// open and nobody types, in a request of its own: findings and diagram never wait for it.

import { element } from "../../shared/dom.js";
import { send } from "../../shared/fetcher.js";
import { Baselines } from "../baselines.js";
import { headers } from "../checker.js";

const PAUSE = 1500; // ms without a keystroke
const LIMIT = 60_000; // ms: the longest budget, and as long again on a busy server
const AGAIN = 3000; // ms until another try, where the server had too much to do
const SIGNS = { found: "!", undecided: "?", proven: "✓" };

export class Verifier {
  #section;
  #list;
  #said;
  #longer;
  #editor;
  #format;
  #baselines = new Baselines();
  #timer = null;
  #running = false;
  #changed = true; // the text, since it was verified
  #shown = false;
  #pause = PAUSE;
  #play;

  /** `format()`: that of the text; `play(run)` opens a run in the simulator. */
  constructor(section, { editor, format, play }) {
    this.#play = play;
    this.#section = section;
    this.#list = section.querySelector("[data-verified]");
    this.#said = section.querySelector("[data-results]");
    this.#longer = section.querySelector("[data-longer]");
    this.#editor = editor;
    this.#format = format;
    this.#longer.addEventListener("click", () => this.#verify({ longer: "1" }));
    section.addEventListener("open", () => this.#changed && this.#verify());
  }

  /** The text has changed. */
  changed(changes) {
    this.#changed = true;
    this.#baselines.add(changes);
    this.#list.classList.toggle("stale", this.#shown);
    this.#wait(PAUSE);
  }

  #wait(pause) {
    clearTimeout(this.#timer);
    if (!this.#section.hidden) this.#timer = setTimeout(() => this.#changed && this.#verify(), pause);
  }

  async #verify(terms = {}) {
    if (this.#running) return;
    clearTimeout(this.#timer);
    this.#running = true;
    this.#changed = false;
    this.#pause = PAUSE;
    this.#longer.hidden = true;
    this.#say("verifying…");
    const query = new URLSearchParams({ format: this.#format(), ...terms });
    this.#baselines.begin();
    try {
      const address = `${this.#section.dataset.verify}?${query}`;
      const response = await send(address, { method: "POST", headers: headers(), body: this.#editor.text, limit: LIMIT });
      const answer = await response.json().catch(() => null);
      if (response.ok && answer) this.#take(answer, this.#baselines.answered());
      else if (response.status === 429) this.#fail("waiting for the server…", true);
      else this.#fail(answer?.error ?? `The server answered ${response.status}.`, response.status >= 500);
    } catch {
      this.#fail("The server cannot be reached.", true);
    } finally {
      this.#running = false;
    }
    if (this.#changed) this.#wait(this.#pause);
  }

  #fail(message, again) {
    this.#say(message);
    this.#changed ||= again;
    this.#pause = again ? AGAIN : PAUSE;
  }

  #say(words) {
    if (this.#said.textContent !== words) this.#said.textContent = words;
  }

  #take({ findings, counts, unread, longer }, moved) {
    this.#shown = true;
    this.#list.classList.toggle("stale", this.#changed);
    if (unread) {
      this.#say("");
      return this.#list.replaceChildren(element("p", { className: "empty", textContent: unread }));
    }
    this.#longer.hidden = Boolean(longer) || !counts.undecided;
    this.#say(`${counts.found} found, ${counts.undecided} not decided, ${counts.proven} proven`);
    return this.#list.replaceChildren(element("ul", { className: "findings" }, ...findings.map((one) => this.#row(one, moved))));
  }

  #row({ code, path, message, hint, verdict, said, range, steps, run_text }, moved) {
    const place = element("button", { type: "button", className: "quiet key", textContent: path || "definition" });
    place.addEventListener("click", () => this.#editor.show(moved(range[0]), moved(range[1])));
    const row = element(
      "li", { className: verdict },
      element("span", { className: "sign", "aria-hidden": "true", textContent: SIGNS[verdict] }), " ",
      element("span", { className: "code", textContent: code }), " ", element("b", { textContent: said }), " ", ...(path || verdict === "found" ? [place] : []), ` ${message} `,
    );
    if (verdict === "found") row.append(element("span", { className: "soft", textContent: hint }));
    if (steps.length) row.append(this.#runOf(steps, run_text));
    return row;
  }

  #runOf(steps, run) {
    const items = steps.map((step) => element("li", { textContent: step }));
    const title = `Run of ${steps.length} step${steps.length === 1 ? "" : "s"}`;
    const box = element("details", {}, element("summary", { textContent: title }), element("ol", {}, ...items));
    if (run) {
      const play = element("button", { type: "button", textContent: "Play it" });
      play.addEventListener("click", () => this.#play(run));
      box.append(play);
    }
    return box;
  }
}
