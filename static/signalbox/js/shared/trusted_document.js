// The only place where text becomes markup: a page of this site, parsed for its regions. Nodes of a parsed document run no
// script. The Content-Security-Policy allows only a policy of this name.

const policy = globalThis.trustedTypes?.createPolicy("signalbox", { createHTML: (text) => text });

/** Parses a page of this site. */
export function parseHtml(text) {
  return new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
}
