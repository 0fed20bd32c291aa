// The tab Try it: a made-up instance of the text as it stands. The server plays the run and writes the tab; the forms in it hold
// the run, and are sent with the text. When the text has changed and nobody types, the run is played again.

import { element } from "../../shared/dom.js";
import { send } from "../../shared/fetcher.js";
import { parseHtml } from "../../shared/trusted_document.js";
import { headers } from "../checker.js";

const PAUSE = 600; // ms without a keystroke
const AGAIN = 1500; // ms until another try, where the server had too much to do
const LIMIT = 30_000; // ms
const KEPT = ["run", "at", "before"];

export class Simulator {
  #section;
  #place;
  #said;
  #at;
  #timer = null;
  #running = false;
  #changed = true; // the text, since it was played
  #waiting = null; // the form and button that are to be sent next

  /** `text()` and `format()` of now; `mark(marks)` takes the `current` and `taken` parts of the diagram, or null. */
  constructor(section, { text, format, mark }) {
    this.#section = section;
    this.#place = section.querySelector("[data-trial]");
    this.#said = section.querySelector("[data-played]");
    this.#at = { text, format, mark };
    section.addEventListener("open", () => this.#replay());
    section.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(new FormData(event.target, event.submitter), event.submitter);
    });
  }

  /** The text has changed. */
  changed() {
    this.#changed = true;
    this.#at.mark(null);
    this.#place.classList.toggle("stale", this.#place.querySelector(".trial") !== null);
    this.#wait(PAUSE);
  }

  /** Plays a run, as a finding of Verify names it. */
  play(run) {
    const form = new FormData();
    form.set("run", run);
    this.#send(form);
  }

  #wait(pause) {
    if (this.#waiting) return; // which sends the text of then
    clearTimeout(this.#timer);
    if (!this.#section.hidden) this.#timer = setTimeout(() => this.#replay(), pause);
  }

  #replay() {
    if (this.#changed && !this.#running && !this.#waiting) this.#send(this.#run());
  }

  // The run that is shown, without a step.
  #run() {
    const form = new FormData();
    for (const name of KEPT) {
      const field = this.#place.querySelector(`[name=${name}][type=hidden]`);
      if (field) form.set(name, field.value);
    }
    return form;
  }

  async #send(form, button = null) {
    this.#place.inert ||= button !== null; // the next step begins at what this one leads to
    if (this.#running) {
      this.#waiting = { form, button };
      return;
    }
    clearTimeout(this.#timer);
    this.#running = true;
    this.#changed = false;
    this.#say("");
    let pause = PAUSE;
    form.set("format", this.#at.format());
    form.set("text", this.#at.text());
    try {
      const { "Content-Type": _, ...own } = headers();
      const response = await send(this.#section.dataset.play, { method: "POST", headers: own, body: form, limit: LIMIT });
      const answer = await response.json().catch(() => null);
      if (response.status === 429) this.#waiting ??= { form, button };
      this.#place.inert = this.#waiting?.button != null;
      if (response.ok && answer) this.#take(answer, button);
      else if (response.status === 429) pause = this.#waiting.form === form ? AGAIN : PAUSE;
      else this.#say(answer?.error ?? `The server answered ${response.status}.`);
    } catch {
      this.#place.inert = this.#waiting?.button != null;
      this.#say("The server cannot be reached: the run is still here.");
    } finally {
      this.#running = false;
    }
    if (this.#waiting) this.#timer = setTimeout(() => this.#next(), pause === AGAIN ? AGAIN : 0);
    else if (this.#changed) this.#wait(pause);
  }

  #next() {
    const { form, button } = this.#waiting;
    this.#waiting = null;
    this.#send(form, button);
  }

  #take({ html, current, taken, unread }, button) {
    if (unread) {
      this.#say(unread);
      if (!this.#place.querySelector(".trial")) this.#place.replaceChildren(element("p", { className: "empty", textContent: unread }));
      return;
    }
    const back = button?.isConnected ? [button.name, button.value] : null;
    const open = [...this.#place.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
    this.#place.replaceChildren(document.importNode(parseHtml(html).querySelector(".trial"), true));
    for (const one of this.#place.querySelectorAll("summary")) one.parentElement.open ||= open.includes(one.textContent);
    this.#place.classList.toggle("stale", this.#changed);
    if (!this.#changed) this.#at.mark({ current, taken });
    if (back) this.#focus(...back);
  }

  // Keeps the keyboard where it was: on the same button, else on the first step that is offered.
  #focus(name, value) {
    const same = [...this.#place.querySelectorAll("button")].find((one) => one.name === name && one.value === value);
    (same ?? this.#place.querySelector(".next button, .tried button"))?.focus({ preventScroll: true });
  }

  #say(words) {
    if (this.#said.textContent !== words) this.#said.textContent = words;
  }
}
