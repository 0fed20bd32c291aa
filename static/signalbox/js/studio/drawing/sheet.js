// The small form of a change, or the menu of a part, where it stands in the diagram.

import { element } from "../../shared/dom.js";

const EDGE = 8; // px between it and the window

export class Sheet {
  #box = element("section", { className: "sheet draw", popover: "auto" });
  #place = new CSSStyleSheet(); // with the point where it stands

  constructor(frame) {
    frame.after(this.#box);
    document.adoptedStyleSheets.push(this.#place);
  }

  /** Shows a form. `fields`: name -> field, or a `list` to read; `run(values)` returns why it does not do it, or nothing. */
  form(title, fields, action, at, run) {
    const error = element("p", { className: "error", role: "alert" });
    const rows = Object.entries(fields).map(([name, field]) => {
      if (name === "list") return field;
      return element("label", {}, `${name} `, Object.assign(field, { name, autocomplete: "off", spellcheck: false }));
    });
    const button = element("button", { className: action === "Delete" ? "danger" : "primary", textContent: action });
    const form = element("form", {}, ...rows, error, button);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      error.textContent = (await run(Object.fromEntries(new FormData(form)))) ?? "";
      button.disabled = false;
      if (!error.textContent && form.isConnected) this.close();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.target.matches("select")) return;
      event.preventDefault();
      form.requestSubmit();
    });
    this.show(title, form, at);
  }

  /** Shows content at a point of the window. */
  show(title, content, { clientX, clientY }) {
    const box = this.#box;
    box.setAttribute("aria-label", title);
    box.replaceChildren(element("header", {}, element("h2", { textContent: title })), content);
    box.togglePopover(true);
    const left = Math.max(EDGE, Math.min(clientX, innerWidth - box.offsetWidth - EDGE));
    const top = Math.max(EDGE, Math.min(clientY, innerHeight - box.offsetHeight - EDGE));
    this.#place.replaceSync(`.sheet.draw { left: ${left}px; top: ${top}px; }`);
    const first = box.querySelector("input, select, button");
    first?.focus();
    first?.select?.();
  }

  close() {
    this.#box.togglePopover(false);
  }

  /** Shows a menu. `ways`: a label and what it runs, each. */
  menu(title, ways, at) {
    const buttons = ways.map(([textContent, run]) => {
      const button = element("button", { type: "button", textContent });
      button.addEventListener("click", () => (this.close(), run()));
      return button;
    });
    const list = element("div", { className: "ways" }, ...buttons);
    list.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length].focus();
    });
    this.show(title, list, at);
  }
}
