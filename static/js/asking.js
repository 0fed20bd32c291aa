// Asking the server again when something moved: not more than once in two seconds, and never for a tab nobody looks at.

const PAUSE = 2000; // ms

/** A function to call when something moved. `address` gives the URL to ask, or nothing; `answered` gets its JSON. */
export function question(address, answered) {
  let asked = -Infinity;
  let due = false;
  let waiting = false;

  async function run() {
    waiting = false;
    if (document.hidden) return; // asked when somebody looks
    due = false;
    asked = performance.now();
    const url = address();
    if (!url) return;
    try {
      const response = await fetch(url, { credentials: "same-origin", signal: AbortSignal.timeout(10000) });
      if (response.ok && !response.redirected) answered(await response.json());
    } catch {
      // the next change asks again
    }
  }

  function ask() {
    due = true;
    if (waiting) return;
    waiting = true;
    setTimeout(run, Math.max(0, asked + PAUSE - performance.now()));
  }

  document.addEventListener("visibilitychange", () => !document.hidden && due && ask());
  return ask;
}
