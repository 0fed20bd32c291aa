import { throttle } from "./fetcher.js";
import { QueueFigures } from "./figures.js";
import { live, resting } from "./lamp.js";
import { changesIn } from "./paint.js";
import { refresh } from "./regions.js";

const connection = live();
const figures = new QueueFigures(connection);
const again = throttle(() => refresh(["head", "queues", "sheets"]), 1000);
let known = "";

connection.subscribe("queues", ({ queues }, meta) => {
  const differs = changesIn(() => figures.show(queues, meta));
  const shape = JSON.stringify(Object.entries(queues).sort().map(([route, value]) => [
    route, value.paused, value.ready > 0, value.delayed > 0, value.dead > 0,
  ]));
  if (known ? known !== shape : differs) again();
  known = shape;
});

// A sheet that is open stays as it is, and is renewed when it closes.
document.addEventListener("toggle", ({ newState }) => newState === "closed" && again(), true);

// What workers measure once a minute.
setInterval(() => resting() || again(), 60000);
