// Follows the bulk actions of the list that can still change, and reloads the list when one of them does.

import { throttle } from "../shared/fetcher.js";
import { connectPage } from "../live/indicator.js";
import { refresh } from "../shared/regions.js";

const connection = connectPage();
const followed = new Map(); // id -> function that ends its subscription
const again = throttle(async () => (await refresh(["bulks"], document.body.dataset.page)) && follow(), 1000);

follow();

function follow() {
  const rows = new Map([...document.querySelectorAll("[data-bulk][data-followed]")].map((row) => [row.dataset.bulk, row]));
  for (const [id, stop] of followed) {
    if (rows.has(id)) continue;
    stop();
    followed.delete(id);
  }
  for (const id of rows.keys()) {
    if (followed.has(id)) continue;
    followed.set(id, connection.subscribe(`instance:bulk/${id}`, (value) => {
      const row = [...document.querySelectorAll("[data-bulk]")].find(({ dataset }) => dataset.bulk === id);
      if (row && (value.gone || String(value.revision) !== row.dataset.revision)) again();
    }));
  }
}
