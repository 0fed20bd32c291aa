// The tab "State": a form of the state that was clicked in the diagram.

import { placeOf } from "./parts.js";

export class StateForm {
  #box = document.querySelector("[data-part]");
  #form = this.#box.querySelector("form");
  #state = "";
  #former = {};
  #drawing;
  #choose;

  /** `drawing` reads and makes the changes; `choose` opens the tab. */
  constructor(drawing, choose) {
    this.#drawing = drawing;
    this.#choose = choose;
    this.#form.addEventListener("click", (event) => {
      const { way } = event.target.dataset;
      const part = { state: this.#state, name: this.#state };
      if (way === "connect") drawing.connect(part, placeOf(event.target));
      if (way === "move") drawing.move(part, placeOf(event.target));
      if (way === "remove") drawing.remove(part, placeOf(event.target));
    });
    this.#form.addEventListener("submit", (event) => (event.preventDefault(), this.#send()));
  }

  /** Opens the tab with the form of a state. */
  async open(state) {
    if (await this.#fill(state)) this.#choose(this.#box);
  }

  async #fill(state) {
    const fields = await this.#drawing.read(state);
    if (!fields) return false;
    [this.#state, this.#former] = [state, fields];
    for (const [name, value] of Object.entries({ ...fields, name: state })) this.#form.elements[name].value = value;
    this.#form.hidden = false;
    this.#box.querySelector(".empty").hidden = true;
    this.#say("");
    return true;
  }

  async #send() {
    const given = Object.fromEntries(new FormData(this.#form));
    const changed = Object.keys(this.#former).filter((name) => given[name].trim() !== this.#former[name]);
    const fields = Object.fromEntries(changed.map((name) => [name, given[name]]));
    const why = await this.#drawing.fill(this.#state, given.name, fields);
    if (why) this.#say(why);
    else await this.#fill(given.name);
  }

  #say(words) {
    this.#form.querySelector(".error").textContent = words;
  }
}
