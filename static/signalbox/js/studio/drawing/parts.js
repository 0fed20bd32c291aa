// What an element of the diagram stands for, and where a form of it opens.

/** Returns the state or the transition that an element belongs to: `state` or `transition`, and `name` in words. */
export function partOf(target) {
  const part = target?.closest(".picture :is(.state, .history, .transition)");
  if (!part) return null;
  const { state, transition, events, source } = part.dataset;
  return state ? { state, name: state } : { transition, name: `${events || "always"} of ${source}` };
}

/** Returns where the form of an element opens that was not chosen with the pointer. */
export function placeOf(target) {
  const { left, bottom } = target.getBoundingClientRect();
  return { clientX: left, clientY: bottom };
}
