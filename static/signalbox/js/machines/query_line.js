// Completes the last word of the query line: a combobox with a list of suggestions from the server.

import { element } from "../shared/dom.js";
import { fetchJson } from "../shared/fetcher.js";

const PAUSE = 150; // ms without a key before the server is asked
const ENDS = /[:=<>]$/; // a suggestion that a value follows

/** Makes the query line of the page a combobox. */
export function completeQueryLine() {
  const input = document.querySelector("input[data-completion]");
  if (input) new Completion(input);
}

class Completion {
  #input;
  #list = element("ul", { className: "suggestions", hidden: true, role: "listbox", "aria-label": "Suggestions" });
  #chosen = -1;
  #timer = 0;
  #asked = 0;

  constructor(input) {
    this.#input = input;
    this.#list.id = `${input.id}-suggestions`;
    const roles = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.#list.id };
    for (const [name, value] of Object.entries(roles)) input.setAttribute(name, value);
    input.after(this.#list);
    input.addEventListener("input", () => this.#wait());
    input.addEventListener("keydown", (event) => this.#press(event));
    input.addEventListener("blur", () => this.#close());
    this.#list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the input keeps the focus
      const option = event.target.closest("li");
      if (option) this.#take(option.textContent);
    });
  }

  get #word() {
    return /\S*$/.exec(this.#input.value.slice(0, this.#input.selectionStart))[0];
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), PAUSE);
  }

  async #ask() {
    this.#asked += 1;
    const turn = this.#asked;
    const url = new URL(this.#input.dataset.completion, location.href);
    url.searchParams.set("word", this.#word);
    const answer = await fetchJson(url); // null after a failure: the line works without suggestions
    if (turn === this.#asked && document.activeElement === this.#input) this.#show(answer?.words ?? []);
  }

  #show(words) {
    const useful = words.filter((word) => word !== this.#word);
    this.#list.replaceChildren(...useful.map((word, number) => makeOption(this.#list.id, word, number)));
    this.#list.hidden = useful.length === 0;
    this.#input.setAttribute("aria-expanded", String(!this.#list.hidden));
    this.#choose(-1);
  }

  #close() {
    clearTimeout(this.#timer);
    this.#asked += 1;
    this.#show([]);
  }

  #choose(number) {
    const options = [...this.#list.children];
    this.#chosen = options.length ? Math.max(-1, Math.min(number, options.length - 1)) : -1;
    for (const [at, option] of options.entries()) option.setAttribute("aria-selected", String(at === this.#chosen));
    const option = options[this.#chosen];
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#input.setAttribute("aria-activedescendant", option.id);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #press(event) {
    if (this.#list.hidden) return;
    if (event.key === "ArrowDown") this.#choose(this.#chosen + 1);
    else if (event.key === "ArrowUp") this.#choose(this.#chosen - 1);
    else if (event.key === "Escape") this.#close();
    else if (event.key === "Enter" && this.#chosen >= 0) this.#take(this.#list.children[this.#chosen].textContent);
    else return;
    event.preventDefault();
  }

  #take(text) {
    const end = this.#input.selectionStart;
    const before = this.#input.value.slice(0, end - this.#word.length);
    const space = ENDS.test(text) ? "" : " ";
    this.#input.value = before + text + space + this.#input.value.slice(end).trimStart();
    const at = before.length + text.length + space.length;
    this.#input.setSelectionRange(at, at);
    this.#close();
    if (!space) this.#wait();
  }
}

function makeOption(list, text, number) {
  return element("li", { id: `${list}-${number}`, role: "option" }, text);
}
