// The forms of the API explorer: they send requests with the person's own session.

import { send } from "../shared/fetcher.js";
import { segment } from "../shared/format.js";

const TIMEOUT = 60_000; // ms to wait for a response

const csrf = document.querySelector("[data-csrf]").dataset.csrf;

function request(form) {
  const { method } = form.dataset;
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = { Accept: "application/json" };
  for (const input of form.querySelectorAll("input[data-in]")) {
    const text = input.value;
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, segment(text));
    else if (text && input.dataset.in === "query") query.append(input.name, text);
    else if (text && input.dataset.in === "header") headers[input.name] = text;
  }
  const body = form.querySelector("[data-in=body]");
  if (method !== "GET") Object.assign(headers, { "X-CSRFToken": csrf, "Content-Type": "application/json" });
  const sent = method === "GET" ? undefined : body?.value || "{}";
  return [query.size ? `${path}?${query}` : path, { method, headers, body: sent, limit: TIMEOUT }];
}

function pretty(text, kind) {
  if (!kind.includes("json")) return text;
  return JSON.stringify(JSON.parse(text), null, 2);
}

async function tryOut(form) {
  const came = form.querySelector(".came");
  came.hidden = false;
  came.textContent = "…";
  try {
    const answer = await send(...request(form));
    const text = await answer.text();
    const head = ["ETag", "Location", "RateLimit", "Idempotent-Replayed"].filter((name) => answer.headers.get(name));
    const lines = [`${answer.status} ${answer.statusText}`, ...head.map((name) => `${name}: ${answer.headers.get(name)}`)];
    came.textContent = `${lines.join("\n")}\n\n${pretty(text, answer.headers.get("Content-Type") || "")}`;
  } catch (error) {
    came.textContent = `Request failed: ${error.message}`;
  }
}

for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation(); // the same request may be sent again at once
    tryOut(form);
  });
}

// Unfolds the operation, schema or code that the address names.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details");
  if (folded) folded.open = true;
  target?.scrollIntoView();
}

addEventListener("hashchange", unfold);
unfold();
