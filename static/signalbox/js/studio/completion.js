// What may be written at the cursor: names of this definition, keys of the language with how they begin, expressions. And
// what the word under the pointer means.

import { snippet } from "../../vendor/codemirror/codemirror.js";
import { element } from "../shared/dom.js";
import { pathAt } from "./paths.js";

const TRANSITIONS = ["on", "after"];
const EXPRESSIONS = ["guard", "output", "in", "log", "delay"];
const OF_FIELDS = ["set", "append", "input", "data"];
const WORD = /[A-Za-z_][A-Za-z0-9_.]*$/;

/** Returns CodeMirror's source of completions. `names()`: those of the last check; `known()`: those from outside. */
export function suggest({ format, names, known }) {
  return (context) => {
    const text = context.state.doc.toString();
    const at = pathAt(text, context.pos, format());
    const options = optionsAt(at, names(), known());
    const expression = options.expression;
    const word = expression ? WORD.exec(text.slice(at.from, context.pos)) : null;
    const from = expression ? context.pos - (word?.[0].length ?? 0) : at.from;
    if (!options.length || (!context.explicit && from === context.pos && !at.quoted)) return null;
    const quote = format() === "json" && !at.quoted && !expression;
    return {
      from,
      to: expression ? context.pos : Math.max(at.to, context.pos),
      options: options.map((option) => {
        if (option.value) return { ...option, apply: begin(option, format() === "json", at.quoted) };
        return quote ? { ...option, apply: `"${option.label}"` } : option;
      }),
      validFor: expression ? /^[A-Za-z0-9_.]*$/ : undefined,
      filter: true,
    };
  };
}

// Writes a key with the beginning of its value; one that has a value is only replaced.
function begin({ label, value }, isJson, quoted) {
  return (view, option, from, to) => {
    const text = view.state.doc.toString();
    const closed = quoted && /["']/.test(text[to]) ? 1 : 0;
    const rest = text.slice(to + closed).trimStart();
    const key = isJson && !quoted ? `"${label}"` : label;
    if (rest[0] === ":") return view.dispatch({ changes: { from, to, insert: key }, selection: { anchor: from + key.length } });
    const end = quoted ? text[from - 1] : "";
    snippet(`${key}${end}: ${value}${isJson && rest[0] === '"' ? "," : ""}`)(view, option, from, to + closed);
    return undefined;
  };
}

/** Returns CodeMirror's source of what the word under the pointer means: a key, or a function of an expression. */
export function explain({ format, known }) {
  return (view, position) => {
    const word = view.state.wordAt(position);
    if (!word) return null;
    const text = view.state.doc.toString();
    const name = text.slice(word.from, word.to);
    const { path, isKey } = pathAt(text, word.to, format());
    const [usage, meaning] = known().functions?.[name] ?? [];
    const isCall = !isKey && usage && text[word.to] === "(";
    const words = isKey && /^["']?\s*:/.test(text.slice(word.to)) ? known().language?.describe([...path, name]) : isCall ? meaning : "";
    if (!words) return null;
    const dom = element("div", { className: "meaning" }, element("code", { textContent: isCall ? usage : name }), ` ${words}`);
    return { pos: word.from, end: word.to, create: () => ({ dom }) };
  };
}

/** Returns options, {label, type, detail}, for a place of `pathAt`. */
export function optionsAt({ path, isKey, open }, names, known) {
  const bare = path.filter((part) => typeof part === "string" || part === null);
  const [last, before] = [bare.at(-1), bare.at(-2)];
  if (isKey) return [...keysAt(path, bare, names, known), ...(open ? list(transition(bare) ? names.states : [], "state") : [])];
  if (["target", "initial"].includes(last) || transition(bare)) return list(names.states, "state");
  if (last === "src") return list([...new Set([...names.handlers, ...(known.handlers ?? [])])], "handler");
  if (last === "queue") return list(names.queues, "queue");
  if (last === "raise" || last === "event") return list(names.events, "event");
  if (last === "unset") return list(names.fields, "field");
  if (last === "machine" || last === "accepts") return list(known.machines ?? [], "machine");
  if (EXPRESSIONS.includes(last) || OF_FIELDS.includes(before) || (OF_FIELDS.includes(last) && last !== "data")) return expression(bare, names, known);
  return list((known.language?.values(path) ?? []).map(String), "value");
}

// Its value is a target: on.go, after.30s, always, onDone, onError of a state, as text or in a list.
function transition(bare) {
  const [last, before, third] = [bare.at(-1), bare.at(-2), bare.at(-3)];
  if (TRANSITIONS.includes(before) && (bare.length === 2 || third !== "states")) return true;
  return ["always", "onDone", "onError"].includes(last);
}

function keysAt(path, bare, names, known) {
  const last = bare.at(-1);
  if (last === "on" || (last === "events" && bare.length === 1)) return list(names.events, "event");
  if (OF_FIELDS.slice(0, 2).includes(last)) return list(names.fields, "field");
  return (known.language?.keys(path) ?? []).map((key) => ({ ...key, info: key.info || undefined, type: "property" }));
}

function expression(bare, names, known) {
  const event = bare[bare.lastIndexOf("on") + 1];
  const payload = bare.includes("on") ? names.payloads[event] ?? [] : [];
  const found = [
    ...list(names.fields, "field"),
    ...payload.map((field) => ({ label: `event.${field}`, type: "variable", detail: "payload" })),
    ...Object.entries(known.words ?? {}).map(([label, detail]) => ({ label, type: "keyword", detail })),
    ...names.states.map((state) => ({ label: `In("${state}")`, apply: `In('${state}')`, type: "class", detail: "in this state" })),
    ...Object.entries(known.functions ?? {}).map(([name, [usage, info]]) => ({
      label: name, apply: `${name}(`, detail: usage.slice(name.length), type: "function", info,
    })),
  ];
  return Object.assign(found, { expression: true });
}

const TYPES = { state: "class", event: "constant", field: "variable", verb: "keyword" };

function list(names, detail) {
  return names.map((label) => ({ label, detail, type: TYPES[detail] ?? "text" }));
}
