// Versions of the site that were built beside this one, of ../versions.js: a script, which a page without a server may read.
const select = document.getElementById("versions");
const own = select.value;
const names = new Set([...(window.versions ?? []), own]);
select.replaceChildren(...[...names].map((name) => new Option(name, name, false, name === own)));
select.addEventListener("change", () => location.assign(`${select.dataset.root}${select.value}/index.html`));

document.addEventListener("DOMContentLoaded", () => {
  // The text around a result is read from its page, which only a server hands out.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  // A page that says how it is comes before the notes that say why.
  if (typeof Scorer !== "undefined") {
    Scorer.score = ([page, , , , score]) => score - (page.startsWith("docs/decisions/") ? 20 : 0);
  }
});
