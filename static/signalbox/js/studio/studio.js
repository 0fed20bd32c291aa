// The page of the Studio: joins editor, checks, diagram, drafts and people.

import { Baselines } from "./baselines.js";
import { Checker } from "./checker.js";
import { explain, suggest } from "./completion.js";
import { Conflict } from "./conflict.js";
import { Converter } from "./converter.js";
import { Drafts } from "./drafts.js";
import { DiagramEditor } from "./drawing/diagram_editor.js";
import { placeOf } from "./drawing/parts.js";
import { createEditor } from "./editor.js";
import { Findings } from "./results/findings.js";
import { KeptText } from "./kept_text.js";
import { Language } from "./language.js";
import { frame, Picture } from "./picture.js";
import { watchPeople } from "./people.js";
import { Simulator } from "./results/simulator.js";
import { makeTabs } from "./results/tabs.js";
import { StateForm } from "./drawing/state_form.js";
import { Verifier } from "./results/verifier.js";

const form = document.querySelector("[data-studio]");
const writable = "writable" in form.dataset;
const NO_NAMES = { states: [], events: [], fields: [], queues: [], handlers: [], payloads: {} };
const baselines = new Baselines();
let names = NO_NAMES;
let known = {};
let format = form.dataset.format;
let tellPlace = () => {};
let machine = form.dataset.machine; // what the text calls it, on the page of a new one

const editor = createEditor(form.querySelector("textarea"), {
  format: format || "json",
  writable,
  complete: suggest({ format: () => format || "json", names: () => names, known: () => known }),
  explain: explain({ format: () => format || "json", known: () => known }),
  changed(changes) {
    baselines.add(changes);
    if (isOther(changes)) format = "";
    checker.ask();
    verifier.changed(changes);
    simulator.changed();
    drafts?.changed();
  },
  moved(offset) {
    picture.point(offset);
    tellPlace();
  },
  keys: [
    { key: "Mod-s", preventDefault: true, run: () => (drafts?.save(), true) },
    { key: "Mod-Shift-f", preventDefault: true, run: () => (converter?.tidy(), true) },
  ],
});
const picture = new Picture((...range) => editor.show(...range), (state) => stateForm?.open(state));
const findings = new Findings(editor, writable);
const simulator = new Simulator(document.querySelector("[data-play]"), {
  text: () => editor.text,
  format: () => format || "guess",
  mark: (marks) => picture.mark(marks),
});
const verifier = new Verifier(document.querySelector("[data-verify]"), {
  editor,
  format: () => format || "guess",
  play(run) {
    simulator.play(run);
    choose(document.querySelector("[data-play]"));
  },
});
const converter = writable ? new Converter(editor, (wanted) => checker.write(wanted)) : null;
const checker = new Checker({
  address: form.dataset.check,
  text: () => (baselines.begin(), editor.text),
  format: () => format || "guess",
  take(answer) {
    const moved = baselines.answered();
    if (answer.known) known = { ...answer.known, language: new Language(answer.known.schema) };
    if (answer.format === "json" || answer.format === "yaml") {
      if (answer.format !== format) editor.format = answer.format;
      format = answer.format;
    }
    names = answer.names;
    machine = form.dataset.machine || answer.machine;
    findings.take(answer, moved);
    picture.take(answer, moved);
    converter?.take(answer);
    drafts?.reached();
    form.dataset.checked = answer.cpu; // ms of processor time
  },
  failed: (message, code) => (drafts ? drafts.unreached(message, code) : say(message)),
});

const choose = makeTabs(document.querySelector("[data-tabs]"));
const drafts = writable ? startDrafts() : null;
const stateForm = writable ? startDrawing() : null;
checker.ask(0);

function startDrafts() {
  const kept = new KeptText(form, editor);
  const conflict = new Conflict(editor);
  const made = new Drafts({ form, editor, kept, conflict, machine: () => machine, format: () => format || "json", say });
  kept.offer();
  const where = () => ({ line: editor.line, state: picture.pointed });
  tellPlace = watchPeople(form, made, where, (others) => picture.markOthers(others));
  return made;
}

function startDrawing() {
  const drawing = new DiagramEditor(frame, { editor, picture, ask: (change) => checker.change(change) });
  const button = document.querySelector("[data-add-state]");
  button.hidden = false;
  button.addEventListener("click", () => drawing.addState(placeOf(button)));
  return new StateForm(drawing, choose);
}

function say(message) {
  const place = form.querySelector("[data-saved]") ?? document.querySelector("[data-drawn]");
  if (place.textContent !== message) place.textContent = message;
}

// Whether most of the text was replaced: it may be of another format then.
function isOther(changes) {
  let gone = 0;
  changes.iterChanges((from, to) => (gone += to - from));
  return gone >= changes.length / 2 && changes.newLength > 1;
}
