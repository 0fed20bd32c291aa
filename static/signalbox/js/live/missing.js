// Shows how many partitions the values on the page are without: their shard of the cluster does not answer.

const known = new Map(); // topic -> machine -> [missing, of]; null where nothing of the topic answers

/** Wraps a listener: it does not hear values of which nothing answers, so that what is shown stays. */
export function hearAll(topic, listener) {
  return (value, meta) => {
    noteMissing(topic, value);
    if (!value.unavailable) listener(value, meta);
  };
}

/** Notes what a value is without, and shows the sum over all topics of the page. */
function noteMissing(topic, value) {
  if (value.unavailable && !value.missing) known.set(topic, null);
  else known.set(topic, new Map(parts(topic, value)));
  show();
}

export function forgetMissing(topic) {
  if (known.delete(topic)) show();
}

function* parts(topic, value) {
  if (value.missing) yield [topic.split(/[:/]/)[1], [value.missing.length, value.partitions]];
  for (const [name, part] of Object.entries(value.machines ?? value.queues ?? {})) {
    if (part?.missing) yield [name.split("/")[0], [part.missing.length, part.partitions]];
  }
}

function show() {
  const notice = document.querySelector("[data-missing]");
  if (!notice) return;
  const machines = new Map([...known.values()].flatMap((found) => [...(found ?? [])]));
  const sum = (place) => [...machines.values()].reduce((all, pair) => all + pair[place], 0);
  notice.hidden = machines.size === 0 && ![...known.values()].includes(null);
  notice.querySelector("[data-missing-some]").hidden = machines.size === 0;
  notice.querySelector("[data-missing-all]").hidden = machines.size > 0;
  notice.querySelector("[data-missing-count]").textContent = sum(0);
  notice.querySelector("[data-missing-of]").textContent = sum(1);
}
