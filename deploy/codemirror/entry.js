// What the Studio uses of CodeMirror 6, bundled into static/signalbox/vendor/codemirror/codemirror.js.

export { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
export { Decoration, drawSelection, EditorView, highlightActiveLine, highlightSpecialChars, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { bracketMatching, codeFolding, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, snippet } from "@codemirror/autocomplete";
export { lintGutter, lintKeymap, openLintPanel, setDiagnostics } from "@codemirror/lint";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { json } from "@codemirror/lang-json";
export { yaml } from "@codemirror/lang-yaml";
export { classHighlighter } from "@lezer/highlight";
