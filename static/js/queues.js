import { live } from "./lamp.js";
import { changesIn, putDepths } from "./paint.js";
import { refresh, throttled } from "./regions.js";

const { queuePage } = document.body.dataset;
const again = throttled(() => refresh(["jobs"]), 1000);
let known = "";

if (queuePage) {
  live().subscribe(`queue:${queuePage}`, (value) => {
    if (value.gone) return;
    const differs = changesIn(() => putDepths({ [queuePage]: value }));
    const now = JSON.stringify(value);
    if (known ? known !== now : differs) again();
    known = now;
  });
} else {
  live().subscribe("queues", ({ queues }) => {
    putDepths(queues);
    const now = Object.keys(queues).sort().join();
    if (known && known !== now) location.reload(); // a machine with queues of its own was published
    known = now;
  });
}
