// Merges the patches of the live view into values.

/** RFC 7396: null removes, objects merge, all else replaces. Neither argument is changed. */
export function merge(value, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(value) ? { ...value } : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete result[key];
    else result[key] = merge(result[key], change);
  }
  return result;
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
