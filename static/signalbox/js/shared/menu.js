// The menu of links that do not fit into the bar. It closes on a click elsewhere, on leaving it, and on Escape.

const more = document.querySelector("[data-more]");

if (more) {
  document.addEventListener("click", ({ target }) => {
    if (!more.contains(target)) more.open = false;
  });
  more.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !more.contains(relatedTarget)) more.open = false;
  });
  more.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !more.open) return;
    more.open = false;
    more.querySelector("summary").focus();
  });
}
