// Findings: underlined in the text with their hint and their fixes, and as a list below it.

import { setDiagnostics } from "../../../vendor/codemirror/codemirror.js";
import { element } from "../../shared/dom.js";

const SHOWN = 200; // in the list; all are underlined

export class Findings {
  #editor;
  #list = document.querySelector("[data-findings]");
  #counts = document.querySelector("[data-counts]");
  #writable;

  constructor(editor, writable) {
    this.#editor = editor;
    this.#writable = writable;
  }

  /** Shows the findings of an answer. `moved(offset)`: where an offset of the checked text is now. */
  take({ findings, errors, warnings }, moved) {
    const { view } = this.#editor;
    const all = findings.map((finding) => ({ ...finding, from: moved(finding.range[0]), to: moved(finding.range[1]), moved }));
    view.dispatch(setDiagnostics(view.state, all.map((finding) => this.#diagnostic(finding))));
    const words = [count(errors, "error"), count(warnings, "warning")].filter(Boolean).join(", ") || "no findings";
    if (this.#counts.textContent !== words) this.#counts.textContent = words;
    this.#show(all);
  }

  #diagnostic({ from, to, code, severity, message, hint, fixes, moved }) {
    const said = `${code} ${message}${hint ? `; ${hint}` : ""}`;
    const actions = this.#writable ? fixes.map((fix) => ({ name: fix.label, apply: () => this.#mend(fix, moved) })) : [];
    return { from, to: Math.max(from, to), severity, message: said, actions };
  }

  #show(all) {
    const focused = [...this.#list.querySelectorAll("button")].indexOf(document.activeElement);
    if (!all.length) return this.#list.replaceChildren(element("p", { className: "empty", textContent: "No findings." }));
    const rows = all.slice(0, SHOWN).map((finding) => this.#row(finding));
    if (all.length > SHOWN) rows.push(element("li", { textContent: `${all.length - SHOWN} more are underlined in the text.` }));
    this.#list.replaceChildren(element("ul", { className: "findings" }, ...rows));
    if (focused >= 0) this.#list.querySelectorAll("button")[focused]?.focus();
    return undefined;
  }

  #row(finding) {
    const { code, severity, path, message, hint, from, to } = finding;
    const place = element("button", { type: "button", className: "quiet key", textContent: path || "definition" });
    place.addEventListener("click", () => this.#editor.show(from, to));
    const row = element(
      "li", { className: severity },
      element("span", { className: "sign", "aria-hidden": "true", textContent: severity === "error" ? "⊘" : "!" }), " ",
      element("span", { className: "code", textContent: code }), " ", element("span", { className: "unseen", textContent: severity }),
      place, ` ${message} `, element("span", { className: "soft", textContent: hint }),
    );
    for (const fix of this.#writable ? finding.fixes : []) {
      const button = element("button", { type: "button", className: "fix", textContent: fix.label });
      button.addEventListener("click", () => this.#mend(fix, finding.moved));
      row.append(" ", button);
    }
    return row;
  }

  #mend({ changes }, moved) {
    const { view } = this.#editor;
    const specs = changes.map(([from, to, insert]) => ({ from: moved(from), to: moved(to), insert }));
    view.dispatch({ changes: specs, selection: { anchor: specs[0].from }, scrollIntoView: true, userEvent: "input.fix" });
    view.focus();
  }
}

function count(number, word) {
  return number ? `${number} ${word}${number === 1 ? "" : "s"}` : "";
}
