// A drawing that is wider or taller than its frame starts where it matters: at the lit state, or at the start.

export function center() {
  for (const frame of document.querySelectorAll("[data-diagram]")) {
    const mark = frame.querySelector(".current, .chosen") ?? frame.querySelector(".initial");
    if (!mark) continue;
    const part = mark.getBoundingClientRect();
    const whole = frame.getBoundingClientRect();
    frame.scrollLeft += part.left + part.width / 2 - whole.left - whole.width / 2;
    frame.scrollTop += part.top + part.height / 2 - whole.top - whole.height / 2;
  }
}
