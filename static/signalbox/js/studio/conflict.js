// Two people wrote one draft: both texts are shown, and the person decides.

export class Conflict {
  #place = document.querySelector("[data-conflict]");
  #theirs = null;
  open = false;

  constructor(editor) {
    this.editor = editor;
  }

  /** `mine(theirs)`: replace theirs; `theirs(theirs)`: continue with theirs; `apart()`: keep mine as another draft. */
  enable({ mine, theirs, apart }) {
    for (const [name, act] of Object.entries({ mine, theirs, new: apart })) {
      this.#place.querySelector(`[data-conflict-${name}]`).addEventListener("click", () => {
        this.open = false;
        this.#place.hidden = true;
        act(this.#theirs);
        this.editor.view.focus();
      });
    }
  }

  /** Shows an answer with status 409: {draft, error}. */
  show({ draft, error }) {
    this.open = true;
    this.#theirs = draft;
    const closed = draft.state !== "open";
    const who = draft.editor || "Another author";
    this.#place.querySelector("[data-conflict-title]").textContent = closed ? error : `${who} changed this draft meanwhile`;
    this.#place.querySelector("[data-theirs]").value = draft.text;
    for (const name of ["mine", "theirs"]) this.#place.querySelector(`[data-conflict-${name}]`).hidden = closed;
    this.#place.hidden = false;
    this.#place.scrollIntoView({ block: "center" });
  }
}
