// What is typed and not saved yet, in the storage of this browser: for a server that is away, and for a closed tab.

const PAUSE = 300; // ms
const MOST = 2_000_000; // characters; browsers keep about five million of a site

export class KeptText {
  #form;
  #editor;
  #timer = null;
  #place = document.querySelector("[data-kept]");

  constructor(form, editor) {
    this.#form = form;
    this.#editor = editor;
  }

  get #key() {
    const { user, machine, draft } = this.#form.dataset;
    return `signalbox.studio.${user}.${machine || "+"}.${draft || "+"}`;
  }

  /** Keeps the text, after a pause or at once. */
  keep(now = false) {
    clearTimeout(this.#timer);
    if (!now) {
      this.#timer = setTimeout(() => this.keep(true), PAUSE);
      return;
    }
    const { text } = this.#editor;
    if (text.length > MOST) return;
    try {
      localStorage.setItem(this.#key, JSON.stringify({ text, at: Date.now() }));
    } catch {
      // the storage is full or forbidden: the draft on the server is what there is
    }
  }

  /** The text is saved. */
  drop() {
    clearTimeout(this.#timer);
    localStorage.removeItem(this.#key);
  }

  /** Offers what an earlier page kept, if it is another text. */
  offer() {
    const found = read(this.#key);
    addEventListener("pagehide", () => this.#timer && this.keep(true));
    if (!found) return;
    if (found.text === this.#editor.text) return this.drop();
    this.#place.querySelector("[data-kept-text]").textContent = `It was typed ${new Date(found.at).toLocaleString()}.`;
    this.#place.hidden = false;
    this.#place.querySelector("[data-kept-take]").addEventListener("click", () => {
      this.#editor.text = found.text;
      this.#close();
    });
    this.#place.querySelector("[data-kept-drop]").addEventListener("click", () => (this.drop(), this.#close()));
  }

  #close() {
    this.#place.hidden = true;
    this.#editor.view.focus();
  }
}

function read(key) {
  try {
    const found = JSON.parse(localStorage.getItem(key));
    return typeof found?.text === "string" ? found : null;
  } catch {
    return null;
  }
}
