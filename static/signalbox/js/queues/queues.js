import { throttle } from "../shared/fetcher.js";
import { QueueFigures } from "./figures.js";
import { connectPage, isResting } from "../live/indicator.js";
import { changesIn } from "../shared/dom.js";
import { refresh } from "../shared/regions.js";

const connection = connectPage();
const figures = new QueueFigures(connection);
const again = throttle(() => refresh(["head", "queues", "sheets"]), 1000);
let known = "";

const { topic } = document.querySelector("[data-topic]").dataset;
connection.subscribe(topic, ({ queues }, meta) => {
  const differs = changesIn(() => figures.show(queues, meta));
  const shape = JSON.stringify(Object.entries(queues).sort().map(([route, value]) => [
    route, value.paused, value.ready > 0, value.leased > 0, value.delayed > 0, value.dead > 0,
  ]));
  if (known ? known !== shape : differs) again();
  known = shape;
});

// An open sheet is not replaced; it is reloaded when it closes.
document.addEventListener("toggle", ({ newState }) => newState === "closed" && again(), true);

// Workers measure once a minute.
setInterval(() => isResting() || again(), 60000);
