import { live } from "./lamp.js";
import { refresh, throttled } from "./regions.js";

const again = throttled(() => refresh(["workers"]), 2000);

live().subscribe("workers", again);
