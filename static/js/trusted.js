// The one place where text becomes markup: a page of this very site, read again to take its regions over. Nodes of a parsed
// document run no script, and the policy's name is the only one that the Content-Security-Policy allows.

const policy = globalThis.trustedTypes?.createPolicy("signalbox", { createHTML: (text) => text });

/** The document of a page that this site answered. */
export function parsed(text) {
  return new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
}
