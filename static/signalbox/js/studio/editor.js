// The text editor: CodeMirror with the looks of the page. Tab leaves it, so that the keyboard is never caught.

import {
  autocompletion, bracketMatching, classHighlighter, closeBrackets, closeBracketsKeymap, codeFolding, Compartment, completionKeymap,
  defaultKeymap, drawSelection, EditorState, EditorView, foldGutter, foldKeymap, highlightActiveLine, highlightSelectionMatches,
  highlightSpecialChars, history, historyKeymap, hoverTooltip, indentOnInput, json, keymap, lineNumbers, lintGutter, lintKeymap, openLintPanel, search,
  searchKeymap, syntaxHighlighting, yaml,
} from "../../vendor/codemirror/codemirror.js";

const LANGUAGES = { json, yaml };

/** Makes an editor in place of `textarea`. `changed(changes)` and `moved(offset)` are called; `complete` suggests,
 *  `explain` says what a word means; `keys`: more bindings. */
export function createEditor(textarea, { format, writable, changed, moved, complete, explain, keys = [] }) {
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
      closeBrackets(), indentOnInput(), search({ top: true }), syntaxHighlighting(classHighlighter),
      autocompletion({ override: [complete], activateOnTyping: true, icons: false }), hoverTooltip(explain),
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

  /** The number of the cursor's line. */
  get line() {
    const { doc, selection } = this.view.state;
    return doc.lineAt(selection.main.head).number;
  }

  set format(format) {
    this.view.dispatch({ effects: this.#language.reconfigure(LANGUAGES[format]?.() ?? []) });
  }

  /** Makes edits of the text, offset from, offset to and words, as one step of undo. */
  edit(edits) {
    this.view.dispatch({ changes: edits.map(([from, to, insert]) => ({ from, to, insert })), userEvent: "input.draw" });
  }

  /** Takes the last step back, or makes it again. */
  undo(again = false) {
    historyKeymap.find(({ key }) => key === (again ? "Mod-y" : "Mod-z")).run(this.view);
  }

  /** Selects a range and scrolls to its beginning. `focus`: the keyboard goes there too. */
  show(from, to = from, focus = true) {
    const { length } = this.view.state.doc;
    const [anchor, head] = [Math.min(to, length), Math.min(from, length)];
    this.view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(head, { y: "center" }) });
    if (focus) this.view.focus();
  }
}
