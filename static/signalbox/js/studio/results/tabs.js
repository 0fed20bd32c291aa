// Sections as tabs: each `[data-tab]` in a `[data-tabs]` is named by its heading. Without a script they stand one below the other.

import { element } from "../../shared/dom.js";

let made = 0;

/** Makes tabs of the sections in `box`. A section hears "open" when it is shown; a click, the arrow keys, Home and End choose, and so
 *  does the function that is returned. */
export function makeTabs(box) {
  const sections = [...box.querySelectorAll(":scope > [data-tab]")];
  const tabs = sections.map((section) => makeTab(section, () => choose(section)));
  const list = element("div", { role: "tablist", className: "result-tabs", "aria-label": box.dataset.tabs }, ...tabs);

  function choose(chosen, focus = false) {
    sections.forEach((section, at) => {
      const is = section === chosen;
      const opened = is && section.hidden;
      section.hidden = !is;
      tabs[at].setAttribute("aria-selected", is);
      tabs[at].tabIndex = is ? 0 : -1;
      if (is && focus) tabs[at].focus();
      if (opened) section.dispatchEvent(new Event("open"));
    });
  }

  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(event.target);
    const last = tabs.length - 1;
    const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    choose(sections[next], true);
  });
  box.prepend(list);
  choose(sections[0]);
  return choose;
}

function makeTab(section, chosen) {
  const heading = section.querySelector("h2");
  made += 1;
  section.id ||= `tab-section-${made}`;
  const tab = element("button", {
    type: "button", role: "tab", id: `tab-${section.id}`, "aria-controls": section.id, textContent: heading.textContent,
  });
  heading.classList.add("unseen");
  section.setAttribute("role", "tabpanel");
  section.setAttribute("aria-labelledby", tab.id);
  tab.addEventListener("click", chosen);
  return tab;
}
