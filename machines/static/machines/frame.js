// Drawings in the admin zoom and pan, by wheel, fingers and keys.

import { zoomable } from "./zoom.js";

for (const frame of document.querySelectorAll(".sb-frame")) {
  frame.title = "Ctrl and the wheel zoom, as do + and -; 0 shows all of it";
  zoomable(frame);
}
