// Changes that are made in the diagram: the server answers them as edits of the text, so that undo is that of the text. A
// double click, a key or the menu of a part opens a small form where it stands; a state has handles to drag to another.

import { element } from "../../shared/dom.js";
import { dragHandle, offerHandles } from "./handles.js";
import { partOf, placeOf } from "./parts.js";
import { Sheet } from "./sheet.js";

export class DiagramEditor {
  #editor;
  #picture;
  #ask;
  #sheet;

  /** `ask(change)` returns the server's answer, or null. */
  constructor(frame, { editor, picture, ask }) {
    [this.#editor, this.#picture, this.#ask] = [editor, picture, ask];
    this.#sheet = new Sheet(frame);
    const on = (kind, act, options) => frame.addEventListener(kind, act, options);
    on("dblclick", (event) => this.#double(event));
    on("keydown", (event) => this.#key(event));
    on("contextmenu", (event) => {
      event.preventDefault();
      const open = () => setTimeout(() => this.#menu(partOf(event.target), event)); // the end of a press closes what it opens
      if (event.buttons) addEventListener("pointerup", open, { once: true });
      else open();
    });
    on("pointerover", ({ target }) => offerHandles(target.closest(".state:not(.history)")));
    on("pointerdown", (event) => event.target.matches(".handle") && this.#drag(frame, event), { capture: true });
  }

  #drag(frame, event) {
    const from = partOf(event.target);
    const moves = event.target.matches(".grip");
    dragHandle(frame, event, (target, at) => {
      const to = partOf(target);
      if (!moves && to?.state) this.connect(from, at, to);
      else if (moves && frame.contains(target) && !to?.transition && to?.state !== from.state) this.move(from, at, to?.state ?? "");
    });
  }

  #double(event) {
    const part = partOf(event.target);
    if (!part) this.addState(event);
    else if (event.target.matches(".cluster > .plate")) this.addState(event, part);
    else if (part.state) this.rename(part, event);
  }

  #key(event) {
    const part = partOf(event.target);
    const { key } = event;
    const at = placeOf(event.target);
    if (event.ctrlKey || event.metaKey) {
      if (key.toLowerCase() === "z" || key === "y") this.#editor.undo(key === "y" || event.shiftKey);
      else return;
    } else if (key === "ContextMenu" || (key === "F10" && event.shiftKey)) this.#menu(part, at);
    else if (part && key === "Delete") this.remove(part, at);
    else if (part?.state && key === "F2") this.rename(part, at);
    else return;
    event.preventDefault();
  }

  #menu(part, at) {
    const ways = part?.state
      ? [["Rename", () => this.rename(part, at)], ["Add transition", () => this.connect(part, at)],
        ["Add state inside", () => this.addState(at, part)], ["Move into", () => this.move(part, at)], ["Delete", () => this.remove(part, at)]]
      : part ? [["Delete", () => this.remove(part, at)]] : [["Add state", () => this.addState(at)]];
    this.#sheet.menu(part ? part.name : "Diagram", ways, at);
  }

  addState(at, around) {
    const title = around ? `New state in ${around.name}` : "New state";
    this.#sheet.form(title, { name: element("input", { required: true }) }, "Add", at, ({ name }) =>
      this.#change({ do: "add-state", name, within: around?.state ?? "" }, name));
  }

  rename(part, at) {
    this.#sheet.form(`Rename ${part.name}`, { name: element("input", { required: true, value: part.state }) }, "Rename", at, ({ name }) =>
      name === part.state ? "" : this.#change({ do: "rename-state", state: part.state, name }, name));
  }

  connect(part, at, target = null) {
    const options = this.#picture.states.map((name) => element("option", { textContent: name }));
    const fields = { event: element("input", { required: true, placeholder: "pay, or after 30s" }) };
    if (!target) fields.to = element("select", {}, ...options);
    const title = target ? `${part.name} → ${target.name}` : `New transition from ${part.name}`;
    this.#sheet.form(title, fields, "Add", at, ({ event, to }) =>
      this.#change({ do: "add-transition", source: part.state, target: target?.state ?? to, event }, part.state));
  }

  /** Moves a state into another, after a list of what that changes. `into`: its name, "" for the machine itself. */
  move(part, at, into = null) {
    if (into !== null) return this.#propose({ do: "move-state", state: part.state, within: into }, part, "Move", at);
    const names = ["", ...this.#picture.states.filter((name) => name !== part.state)];
    const list = element("select", {}, ...names.map((value) => element("option", { value, textContent: value || "the machine itself" })));
    return this.#sheet.form(`Move ${part.name}`, { into: list }, "Move", at, (values) => this.move(part, at, values.into));
  }

  /** Deletes a part, after a list of what goes with it. */
  remove(part, at) {
    const wanted = part.state ? { do: "delete-state", state: part.state } : { do: "delete-transition", transition: part.transition };
    return this.#propose(wanted, part, "Delete", at);
  }

  // Makes a change that is listed first where it changes more than was chosen.
  async #propose(wanted, part, verb, at) {
    const found = await this.#request(wanted);
    if (found.edits && !found.breaks.length) return this.#apply(found, part.state);
    const lines = found.breaks ?? found.reasons;
    const list = element("ul", {}, ...lines.map((textContent) => element("li", { textContent })));
    if (found.edits) this.#sheet.form(`${verb} ${part.name}?`, { list }, verb, at, () => this.#apply(found, part.state));
    else this.#sheet.show(`${part.name} stays`, element("form", {}, list), at);
    return undefined;
  }

  /** Makes a change. Returns why not, or nothing. `state`: the one that has the focus then. */
  async #change(wanted, state) {
    const found = await this.#request(wanted);
    return found.edits ? this.#apply(found, state) : found.reasons.join("\n");
  }

  /** Fills a state. `name` and `fields` that differ. Returns why not, or nothing. */
  async fill(state, name, fields) {
    const why = name === state ? "" : await this.#change({ do: "rename-state", state, name });
    if (why || !Object.keys(fields).length) return why;
    return this.#change({ do: "set-fields", state: name, fields });
  }

  /** Returns what the form of a state shows, or null. */
  async read(state) {
    return (await this.#request({ do: "read-fields", state })).fields ?? null;
  }

  async #request(wanted) {
    const before = this.#editor.text;
    const found = (await this.#ask(wanted))?.change ?? { refused: "The server does not answer: try again." };
    const reasons = [found.refused, ...(found.findings ?? []).map(({ path, message }) => `${path}: ${message}`)];
    return found.refused ? { reasons } : { ...found, before };
  }

  #apply({ edits, before }, state) {
    if (this.#editor.text !== before) return "The text changed meanwhile: try again.";
    this.#sheet.close(); // before the next drawing, which takes the focus only where no form has it
    this.#editor.edit(edits);
    if (state) this.#picture.focus(state);
    return "";
  }
}
