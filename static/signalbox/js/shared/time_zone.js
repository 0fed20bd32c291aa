// Offers the browser's time zone once to a person who has not chosen one.

const template = document.querySelector("template[data-zone-offer]");
const guess = Intl.DateTimeFormat().resolvedOptions().timeZone;

if (template && guess && guess !== document.body.dataset.zone && guess !== "Etc/UTC") {
  const offer = document.importNode(template.content, true);
  offer.querySelector("[data-guess]").textContent = guess.replaceAll("_", " ");
  const take = offer.querySelector("[data-take]");
  take.value = guess;
  take.textContent = `Use ${guess.replaceAll("_", " ")}`;
  document.body.append(offer);
}
