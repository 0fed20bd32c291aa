// Keyboard navigation in a diagram: Tab moves over states. In a state, `l` moves over the transitions that leave it, and
// Escape returns to the state. Outside of a state, `l` moves over all transitions, those that are available first.

/** Enables the keys in a frame, also for a diagram that replaces the present one. */
export function enableLineKeys(frame) {
  const settle = () => links(frame).forEach((line) => line.setAttribute("tabindex", line.matches("a.possible") ? "0" : "-1"));
  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const found = { l: next, Escape: back }[event.key]?.(frame, event.target.closest("a, .transition"));
    if (!found) return;
    event.preventDefault();
    found.focus();
  });
  document.addEventListener("redrawn", settle);
  settle();
}

function links(frame) {
  return [...frame.querySelectorAll(".transition")];
}

function next(frame, at) {
  const source = at?.dataset.state ?? at?.dataset.source;
  const all = links(frame).sort((one, other) => other.matches(".possible") - one.matches(".possible"));
  const states = frame.querySelector("a.state");
  const leaving = states ? all.filter((line) => line.dataset.source === source) : all;
  return leaving[(leaving.indexOf(at) + 1) % leaving.length];
}

function back(frame, at) {
  return [...frame.querySelectorAll("a.state")].find((state) => state.dataset.state === at?.dataset.source);
}
