// What may be written at the cursor: names of this definition, keys of the language, expressions.

import { pathAt } from "./paths.js";

const TRANSITIONS = ["on", "after"];
const LISTS = ["entry", "exit", "actions", "do", "finalize", "else"];
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
      options: options.map((option) => (quote ? { ...option, apply: `"${option.label}"` } : option)),
      validFor: expression ? /^[A-Za-z0-9_.]*$/ : undefined,
      filter: true,
    };
  };
}

/** Returns options, {label, type, detail}, for a place of `pathAt`. */
export function optionsAt({ path, isKey, open }, names, known) {
  const bare = path.filter((part) => typeof part === "string" || part === null);
  const [last, before, third] = [bare.at(-1), bare.at(-2), bare.at(-3)];
  if (isKey) return [...keysAt(bare, last, before, names, known), ...(open ? list(transition(bare) ? names.states : [], "state") : [])];
  if (["target", "initial"].includes(last) || transition(bare)) return list(names.states, "state");
  if (last === "src") return list([...new Set([...names.handlers, ...(known.handlers ?? [])])], "handler");
  if (last === "queue") return list(names.queues, "queue");
  if (last === "raise" || last === "event") return list(names.events, "event");
  if (last === "unset") return list(names.fields, "field");
  if (last === "machine" || last === "accepts") return list(known.machines ?? [], "machine");
  if (last === "type" && third === "states") return list(["final", "parallel", "history"], "type");
  if (last === "reenter") return list(["true", "false"], "value");
  if (EXPRESSIONS.includes(last) || OF_FIELDS.includes(before) || (OF_FIELDS.includes(last) && last !== "data")) return expression(bare, names, known);
  return [];
}

// Its value is a target: on.go, after.30s, always, onDone, onError of a state, as text or in a list.
function transition(bare) {
  const [last, before, third] = [bare.at(-1), bare.at(-2), bare.at(-3)];
  if (TRANSITIONS.includes(before) && (bare.length === 2 || third !== "states")) return true;
  return ["always", "onDone", "onError"].includes(last);
}

function keysAt(bare, last, before, names, known) {
  if (last === "on") return list(names.events, "event");
  if (OF_FIELDS.slice(0, 2).includes(last)) return list(names.fields, "field");
  if (last === "events" && bare.length === 1) return list(names.events, "event");
  if (LISTS.includes(last)) return list(known.verbs ?? [], "verb");
  const kind = kindOf(bare, last, before);
  return Object.entries(known.keys?.[kind] ?? {}).map(([label, info]) => ({ label, type: "property", info: info || undefined }));
}

function kindOf(bare, last, before) {
  if (!bare.length) return "machine";
  if (before === "states" && bare.length % 2 === 0) return "state";
  if (transition(bare)) return "transition";
  if (before === "events" && bare.length === 2) return "event";
  if (before === "properties") return "property";
  if (before === "queues" && bare.length === 2) return "queue";
  return { invoke: "invoke", enqueue: "invoke", retry: "retry", retain: "retain" }[last] ?? "";
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
