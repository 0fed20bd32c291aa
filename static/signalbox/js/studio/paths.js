// Where in a definition the cursor is: the keys and indexes that lead there, also in a text that is only half written.

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/** Returns {path, isKey, from, to, quoted}: the path of what stands, or is to stand, at the cursor. Of a key the path is that
 *  of the object around it. */
export function pathAt(text, offset, format) {
  return format === "yaml" ? yamlPath(text, offset) : jsonPath(text, offset);
}

function jsonPath(text, offset) {
  const around = []; // {list, index, key, colon}
  const found = { from: offset, to: offset, quoted: false };
  TOKEN.lastIndex = 0;
  for (let match; (match = TOKEN.exec(text)) && match.index < offset; ) {
    const [token] = match;
    const end = match.index + token.length;
    const top = around.at(-1);
    if (token === "{" || token === "[") around.push({ list: token === "[", index: 0, key: null, colon: false });
    else if (token === "}" || token === "]") around.pop();
    else if (token === ",") Object.assign(top ?? {}, { key: null, colon: false, index: (top?.index ?? 0) + 1 });
    else if (token === ":") Object.assign(top ?? {}, { colon: true });
    else if (inside(token, match.index, end, offset)) {
      const quoted = token[0] === '"';
      Object.assign(found, { from: match.index + quoted, quoted, to: end - (quoted && token.length > 1 && token.at(-1) === '"') });
      break;
    } else if (top && !top.list && !top.colon) top.key = plain(token);
  }
  const top = around.at(-1);
  const isKey = Boolean(top && !top.list && !top.colon);
  const path = around.slice(0, -1).map(step);
  if (top && !isKey) path.push(step(top));
  return { ...found, path, isKey };
}

// A text without its second quote, or a bare word that goes up to the cursor, is still being written.
function inside(token, start, end, offset) {
  if (token[0] === '"') return offset > start && (offset < end || token.length === 1 || token.at(-1) !== '"');
  return offset <= end;
}

function step({ list, index, key }) {
  return list ? index : key;
}

function plain(token) {
  try {
    return String(JSON.parse(token));
  } catch {
    return token.replaceAll('"', "");
  }
}

const LINE = /^(\s*)((?:-\s+)*)(?:("[^"]*"|'[^']*'|[^\s:#"'][^:#]*?)\s*:(?:\s|$))?/;

// By indentation: braces inside of YAML are no part of the path.
function yamlPath(text, offset) {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const lines = text.slice(0, start).split("\n").slice(0, -1);
  const line = text.slice(start, offset);
  const [, spaces, dashes, key] = LINE.exec(line);
  const value = key === undefined ? "" : line.slice(line.indexOf(":", spaces.length + dashes.length + key.length - 1) + 1);
  const path = [];
  let margin = spaces.length + dashes.length;
  if (dashes) path.unshift(0);
  let list = dashes ? spaces.length : -1; // where the items of a list stand whose key is above
  for (const before of lines.reverse()) {
    if (!before.trim() || before.trim().startsWith("#")) continue;
    const [, room, items, name] = LINE.exec(before);
    const own = room.length + items.length;
    if (name !== undefined && (own < margin || (list >= 0 && own <= list && !items))) {
      path.unshift(unquote(name));
      if (items) path.splice(0, 0, 0);
      margin = own;
      list = items ? room.length : -1;
    } else if (items && room.length < margin && list < 0) {
      path.unshift(0);
      list = room.length;
      margin = room.length;
    }
    if (margin === 0 && list < 0) break;
  }
  if (key !== undefined) path.push(unquote(key));
  const word = /["']?([^\s"'[\],{}]*)$/.exec(key === undefined ? line.slice(spaces.length + dashes.length) : value);
  const from = offset - word[1].length;
  const isKey = key === undefined;
  return { path, isKey, from, to: offset, quoted: word[0].length > word[1].length, open: isKey && Boolean(dashes) };
}

function unquote(name) {
  return name.replace(/^["']|["']$/g, "");
}
