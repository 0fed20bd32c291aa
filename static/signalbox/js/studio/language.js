// The language of definitions, by its JSON Schema: what a key means, which keys and values a place takes, and how they
// are begun. The docs and the checks have the same schema.

const MOST = 200; // schemas that one place may have
const SHOWN = 2; // levels of what is required that a snippet writes out

export class Language {
  #schema;

  constructor(schema) {
    this.#schema = schema;
  }

  /** Returns what the key at the end of a path means, or "". */
  describe(path) {
    for (const found of this.#find(path)) if (found.description) return found.description;
    return "";
  }

  /** Returns the keys that the object at a path takes: {label, info, value}; `value`: a snippet. */
  keys(path) {
    const found = new Map();
    for (const { properties = {} } of this.#find(path)) {
      for (const [label, schema] of Object.entries(properties)) {
        if (!found.has(label)) found.set(label, { label, info: this.describe([...path, label]), value: this.#begin(schema) });
      }
    }
    return [...found.values()];
  }

  /** Returns the values that a path takes, where they are a few words. */
  values(path) {
    return [...new Set(this.#find(path).flatMap((found) => (found.type === "boolean" ? [true, false] : found.enum ?? [])))];
  }

  // The schemas of a path, each with what it refers to and its alternatives.
  #find(path) {
    let found = this.#expand([this.#schema]);
    for (const part of path) found = this.#expand(found.flatMap((one) => below(one, part)));
    return found;
  }

  #expand(schemas) {
    const found = new Set();
    const add = (schema) => {
      if (!schema || typeof schema !== "object" || found.has(schema) || found.size > MOST) return;
      found.add(schema);
      add(this.#refer(schema));
      for (const kind of ["anyOf", "oneOf", "allOf"]) schema[kind]?.forEach(add);
    };
    schemas.forEach(add);
    return [...found];
  }

  #refer({ $ref }) {
    return $ref && this.#schema.$defs[$ref.split("/").at(-1)];
  }

  // A value of a schema with the fields of a snippet: the shortest that is of the right kind.
  #begin(schema, depth = 0) {
    const kinds = this.#expand([schema]);
    const is = (type) => kinds.find((one) => one.type === type);
    if (is("string") || kinds.some((one) => one.enum)) return '"#{}"';
    const objects = kinds.filter((one) => one.type === "object").sort((one, other) => (one.required?.length ?? 0) - (other.required?.length ?? 0));
    if (objects.length) return this.#beginObject(objects[0], depth);
    return is("array") ? `[${depth < SHOWN ? this.#begin(is("array").items ?? {}, depth + 1) : "#{}"}]` : "#{}";
  }

  #beginObject({ required = [], properties = {}, additionalProperties }, depth) {
    const members = required.map((key) => `"${key}": ${depth < SHOWN ? this.#begin(properties[key] ?? {}, depth + 1) : '"#{}"'}`);
    if (!members.length && additionalProperties && depth < SHOWN) members.push(`"#{name}": ${this.#begin(additionalProperties, depth + 1)}`);
    return `{${members.join(", ") || "#{}"}}`;
  }
}

function below({ properties, additionalProperties, items }, part) {
  if (typeof part === "number") return [items];
  return [properties && Object.hasOwn(properties, part) ? properties[part] : additionalProperties];
}
