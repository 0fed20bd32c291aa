// Keyboard navigation in a diagram: Tab moves over states. In a state, `l` moves over the transitions that leave it, and
// Escape returns to the state.

/** Enables the keys in a frame, also for a diagram that replaces the present one. */
export function enableLineKeys(frame) {
  const settle = () => links(frame).forEach((line) => line.setAttribute("tabindex", "-1"));
  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const found = { l: next, Escape: back }[event.key]?.(frame, event.target.closest("a"));
    if (!found) return;
    event.preventDefault();
    found.focus();
  });
  document.addEventListener("redrawn", settle);
  settle();
}

function links(frame) {
  return [...frame.querySelectorAll("a.transition")];
}

function next(frame, at) {
  const source = at?.dataset.state ?? at?.dataset.source;
  const leaving = links(frame).filter((line) => line.dataset.source === source);
  return leaving[(leaving.indexOf(at) + 1) % leaving.length];
}

function back(frame, at) {
  return [...frame.querySelectorAll("a.state")].find((state) => state.dataset.state === at?.dataset.source);
}
