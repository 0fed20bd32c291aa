// Unfolds the operation, schema or code of the API's page that the address names.

function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details");
  if (folded) folded.open = true;
  target?.scrollIntoView();
}

addEventListener("hashchange", unfold);
unfold();
