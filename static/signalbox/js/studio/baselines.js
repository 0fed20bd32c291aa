// Offsets of an answer are those of the text that was sent. A baseline remembers what has changed since.

export class Baselines {
  #sent = { changes: null };
  #followed = [this.#sent]; // those whose offsets are still used

  /** A text is sent now. */
  begin() {
    this.#sent = { changes: null };
    this.#followed = [...this.#followed.slice(-3), this.#sent];
  }

  /** The text has changed. */
  add(changes) {
    for (const baseline of this.#followed) baseline.changes = baseline.changes ? baseline.changes.compose(changes) : changes;
  }

  /** The text that was sent last is answered. Returns a function: where an offset of it is now. */
  answered() {
    const baseline = this.#sent;
    return (offset) => (baseline.changes ? baseline.changes.mapPos(Math.min(offset, baseline.changes.length), 1) : offset);
  }
}
