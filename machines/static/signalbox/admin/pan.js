// Dragging with a mouse scrolls the frame. Touch does so by itself.

const SLACK = 4; // pixels that a mouse may move in a click

/** Starts a drag, on `pointerdown` in a frame that scrolls. */
export function drag(frame, { pointerType, button, clientX, clientY, pointerId }) {
  if (pointerType !== "mouse" || button !== 0) return;
  const start = { left: frame.scrollLeft, top: frame.scrollTop };
  const ended = new AbortController();
  let moved = false;
  const listen = (kind, act, options) => frame.addEventListener(kind, act, { signal: ended.signal, ...options });
  listen("pointermove", (event) => {
    const [x, y] = [event.clientX - clientX, event.clientY - clientY];
    if (!moved && Math.hypot(x, y) < SLACK) return;
    if (!moved) frame.setPointerCapture(pointerId);
    moved = true;
    frame.classList.add("held-fast");
    frame.scrollLeft = start.left - x;
    frame.scrollTop = start.top - y;
  });
  const end = () => {
    frame.classList.remove("held-fast");
    setTimeout(() => ended.abort()); // after the click that follows
  };
  listen("pointerup", end);
  listen("pointercancel", end);
  listen("click", (event) => moved && event.preventDefault(), { capture: true });
}
