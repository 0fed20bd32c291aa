// The text editor: CodeMirror with the looks of the page. Tab leaves it, so that the keyboard is never caught.

import {
  autocompletion, bracketMatching, classHighlighter, closeBrackets, closeBracketsKeymap, codeFolding, Compartment, completionKeymap, Decoration,
  defaultKeymap, drawSelection, EditorState, EditorView, foldGutter, foldKeymap, highlightActiveLine, highlightSelectionMatches,
  highlightSpecialChars, history, historyKeymap, indentOnInput, json, keymap, lineNumbers, lintGutter, lintKeymap, openLintPanel, search,
  searchKeymap, StateEffect, StateField, syntaxHighlighting, yaml,
} from "../../vendor/codemirror/codemirror.js";

const LANGUAGES = { json, yaml };
const light = StateEffect.define(); // a range that the diagram points at
const lit = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(light)) continue;
      const { from, to } = effect.value;
      return to > from ? Decoration.set([Decoration.mark({ class: "cm-pointed" }).range(from, to)]) : Decoration.none;
    }
    return marks.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Makes an editor in place of `textarea`. `changed(changes)` and `moved(offset)` are called; `complete` suggests;
 *  `keys`: more bindings. */
export function createEditor(textarea, { format, writable, changed, moved, complete, keys = [] }) {
  const language = new Compartment();
  const nonce = document.querySelector("script[nonce]").nonce;
  const view = new EditorView({
    doc: textarea.value,
    extensions: [
      EditorView.cspNonce.of(nonce),
      language.of(LANGUAGES[format]?.() ?? []),
      EditorState.readOnly.of(!writable),
      EditorState.tabSize.of(2),
      lineNumbers(), lintGutter(), codeFolding(), foldGutter({ openText: "▾", closedText: "▸" }),
      history(), drawSelection(), highlightSpecialChars(), highlightActiveLine(), highlightSelectionMatches(), bracketMatching(),
      closeBrackets(), indentOnInput(), search({ top: true }), syntaxHighlighting(classHighlighter), lit,
      autocompletion({ override: [complete], activateOnTyping: true, icons: false }),
      keymap.of([...keys, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap,
        ...lintKeymap.filter(({ run }) => run !== openLintPanel)]),
      EditorView.contentAttributes.of({ "aria-label": "Definition", "aria-multiline": "true", tabindex: "0" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) changed(update.changes);
        if (update.docChanged || update.selectionSet) moved(update.state.selection.main.head);
      }),
    ],
  });
  textarea.hidden = true;
  textarea.after(view.dom);
  return new Editor(view, textarea, language);
}

class Editor {
  #language;
  #textarea;

  constructor(view, textarea, language) {
    this.view = view;
    this.#textarea = textarea;
    this.#language = language;
    textarea.form.addEventListener("submit", () => (textarea.value = this.text));
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Replaces the whole text; undo brings the former one back. */
  set text(text) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, scrollIntoView: false });
    this.#textarea.value = text;
  }

  set format(format) {
    this.view.dispatch({ effects: this.#language.reconfigure(LANGUAGES[format]?.() ?? []) });
  }

  /** Moves the cursor, and the page to it. */
  show(from, to = from) {
    const { length } = this.view.state.doc;
    const at = Math.min(from, length);
    this.view.dispatch({
      selection: { anchor: at }, effects: [EditorView.scrollIntoView(at, { y: "center" }), light.of({ from: at, to: Math.min(to, length) })],
    });
    this.view.focus();
  }
}
