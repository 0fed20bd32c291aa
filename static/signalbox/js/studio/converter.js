// Text in order, as JSON or as YAML, and out of other formats: the server writes it.

import { element } from "../shared/dom.js";

export class Converter {
  #editor;
  #write;
  #format = "";
  #offer = document.querySelector("[data-convert]");
  #tidy = document.querySelector("[data-tidy]");
  #formats = document.querySelector("[data-formats]");

  /** `write(format)` gets the text from the server. */
  constructor(editor, write) {
    this.#editor = editor;
    this.#write = write;
    this.#tidy.hidden = false;
    this.#tidy.addEventListener("click", () => this.tidy());
    this.#formats.hidden = false;
    this.#formats.addEventListener("click", ({ target }) => target.dataset.write && this.#put(target.dataset.write));
  }

  /** Takes an answer: what the text looks like. */
  take({ format, called }) {
    this.#format = format;
    const own = format === "json" || format === "yaml";
    for (const button of this.#formats.children) button.setAttribute("aria-pressed", String(button.dataset.write === format));
    if (this.#offer.hidden === own && this.#offer.dataset.format === format) return;
    this.#offer.hidden = own;
    this.#offer.dataset.format = format;
    if (own) return;
    const buttons = ["json", "yaml"].map((wanted) => {
      const button = element("button", { type: "button", textContent: `Convert to ${wanted.toUpperCase()}` });
      button.addEventListener("click", () => this.#put(wanted));
      return button;
    });
    this.#offer.replaceChildren(`This reads as ${called}. `, ...buttons);
  }

  tidy() {
    return this.#put(this.#format === "yaml" ? "yaml" : "json");
  }

  async #put(format) {
    const before = this.#editor.text;
    const answer = await this.#write(format);
    if (!answer) return;
    if (answer.refused || this.#editor.text !== before) return this.#say(answer.refused ?? "The text changed meanwhile.");
    this.#editor.text = answer.written;
    this.#say("");
  }

  #say(words) {
    document.querySelector("[data-saved]").textContent = words;
  }
}
