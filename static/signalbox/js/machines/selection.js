// Selects rows of the instance list: all of a page by one box, and says how many are selected.

const form = () => document.querySelector("form.selection");
const boxes = () => [...form().querySelectorAll("input[name=pick]")];

/** Shows the box for the whole page, and keeps the figure right while the list is replaced. */
export function watchSelection() {
  const region = document.querySelector("[data-region=listing]");
  region.addEventListener("change", ({ target }) => {
    if (!form() || target.type !== "checkbox") return;
    if (target.closest("[data-pick-all]")) for (const box of boxes()) box.checked = target.checked;
    tell();
  });
  new MutationObserver(tell).observe(region, { childList: true });
  tell();
}

function tell() {
  if (!form()) return;
  const all = form().querySelector("[data-pick-all]");
  const picked = boxes().filter((box) => box.checked).length;
  const box = all.querySelector("input");
  all.hidden = false;
  box.checked = picked > 0 && picked === boxes().length;
  box.indeterminate = picked > 0 && !box.checked;
  form().querySelector("[data-picked]").textContent = picked ? `${picked} selected:` : "Select instances:";
  for (const button of form().querySelectorAll("button")) button.disabled = !picked;
}
