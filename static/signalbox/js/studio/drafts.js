// Keeps the text as a draft on the server while it is written. What cannot be sent stays in this browser, which is said.

import { send } from "../shared/fetcher.js";
import { headers } from "./checker.js";

const PAUSE = 2000; // ms without a keystroke
const RETRY = 4000;

export class Drafts {
  #at;
  #timer = null;
  #saving = false;
  #away = false;
  dirty = false;

  constructor(parts) {
    this.#at = parts;
    const { form, conflict, editor } = parts;
    form.addEventListener("submit", (event) => {
      if (event.submitter?.name !== "do" || event.submitter.value !== "save") return;
      event.preventDefault();
      this.save();
    });
    form.querySelector("[name=note]").addEventListener("input", () => this.changed());
    form.querySelector("[data-review]").addEventListener("click", (event) => this.#review(event));
    conflict.enable({
      mine: (theirs) => (this.#see(theirs), this.save()),
      theirs: (theirs) => (this.#see(theirs), (editor.text = theirs.text), this.#settle("")),
      apart: () => (delete form.dataset.draft, this.save()),
    });
  }

  get draft() {
    return this.#at.form.dataset.draft;
  }

  /** Something was typed. A machine that is new is kept on the server once it was saved by hand. */
  changed() {
    this.dirty = true;
    this.#at.kept.keep();
    if (this.#at.form.dataset.machine && !this.#at.conflict.open) this.#wait(PAUSE);
    this.#at.say(this.#away ? AWAY : "");
  }

  async save() {
    const { form, editor, conflict, say } = this.#at;
    clearTimeout(this.#timer);
    if (this.#saving || conflict.open) return;
    const machine = form.dataset.machine || this.#at.machine();
    if (!machine) return say('Write "id" first: it is the name of the machine.');
    this.#saving = true;
    const text = editor.text;
    say("Saving…");
    try {
      const response = await send(`${this.#address(machine)}save/?${this.#terms()}`, { method: "POST", headers: headers(), body: text });
      const answer = await response.json().catch(() => null);
      if (response.ok && answer && !response.redirected) this.#settle(text, machine, answer);
      else if (response.status === 409 && answer?.draft) conflict.show(answer);
      else this.#fail(response, answer);
    } catch {
      this.unreached(AWAY, "away");
    } finally {
      this.#saving = false;
    }
  }

  #terms() {
    const { form, format } = this.#at;
    const { draft, revision, base } = form.dataset;
    const terms = { format: format(), note: form.querySelector("[name=note]").value };
    return new URLSearchParams(draft ? { ...terms, draft, expect: revision } : { ...terms, base });
  }

  #address(machine) {
    return this.#at.form.dataset.edit.replace("NAME", machine);
  }

  #settle(text, machine, answer) {
    const { form, editor, kept, say } = this.#at;
    this.#away = false;
    if (!answer) return say("");
    kept.drop();
    const first = String(answer.id) !== form.dataset.draft;
    Object.assign(form.dataset, { machine, draft: answer.id, revision: answer.revision, base: answer.base ?? "" });
    const review = form.querySelector("[data-review]");
    review.hidden = false;
    review.href = form.dataset.draftPage.replace("NAME", machine).replace("/0/", `/${answer.id}/`);
    if (first) history.replaceState(null, "", `${this.#address(machine)}?draft=${answer.id}`);
    this.dirty = editor.text !== text;
    if (this.dirty) this.changed();
    say(`Saved: draft ${answer.id}, revision ${answer.revision}`);
    return undefined;
  }

  #see({ revision }) {
    this.#at.form.dataset.revision = revision;
  }

  #fail(response, answer) {
    if (response.redirected) return this.#at.say("You are logged out: log in again in another tab. The text is kept in this browser.");
    if (response.status >= 500 || response.status === 429) return this.unreached(answer?.error ?? AWAY, "away");
    return this.#at.say(answer ? `Not saved: ${answer.error} (${answer.code})` : `Not saved: the server answered ${response.status}.`);
  }

  /** The server did not answer. */
  unreached(message, code) {
    if (code === "away") {
      this.#away = true;
      this.#at.kept.keep(true);
      if (this.dirty && this.#at.form.dataset.machine) this.#wait(RETRY);
    }
    this.#at.say(code === "away" ? AWAY : message);
  }

  /** The server answered a check. */
  reached() {
    if (!this.#away) return;
    this.#away = false;
    this.#at.say("");
    if (this.dirty && this.#at.form.dataset.machine) this.#wait(0);
  }

  async #review(event) {
    if (!this.dirty) return;
    event.preventDefault();
    await this.save();
    if (!this.dirty) location.assign(event.target.href);
  }

  #wait(pause) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), pause);
  }
}

const AWAY = "The server cannot be reached. What you type is kept in this browser and sent when it is back.";
