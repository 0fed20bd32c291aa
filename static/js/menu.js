// The menu of what does not fit into the bar: it opens and closes by itself, and here also as menus close elsewhere.

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
