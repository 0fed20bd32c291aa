// Menus, popovers and folded forms. A menu, <details class="menu">, closes on a click elsewhere, on leaving it, and on Escape,
// which gives the focus back. Whatever is opened takes the focus into its first field.

const FIELDS = "input:not([type=hidden], [disabled]), select, textarea";

for (const menu of document.querySelectorAll("details.menu")) {
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
  const summary = target.closest?.("summary");
  // On a touch screen the keyboard would cover what was just opened.
  if (summary && !matchMedia("(pointer: coarse)").matches) setTimeout(() => summary.parentElement.open && focusField(summary.parentElement));
});

document.addEventListener("toggle", ({ target, newState }) => {
  if (newState === "open" && target.matches("[popover]")) focusField(target);
}, true); // it does not bubble

// A link to a folded form (#create), or to one over the page, opens it.
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.popover && !target.matches(":popover-open")) target.showPopover(); // it takes the focus when it opens
  if (!target || target.tagName !== "DETAILS") return;
  target.open = true;
  focusField(target);
}

function focusField(root) {
  const field = [...root.querySelectorAll(FIELDS)].find((found) => found.form && found.checkVisibility());
  field?.focus();
}

addEventListener("hashchange", openTarget);
// The browser goes to the place of the address after the page has come, and takes the focus along.
if (document.readyState === "complete") openTarget();
else addEventListener("load", () => setTimeout(openTarget));
