// Drawings in the admin zoom and pan, by wheel, fingers and keys.

import { zoomable } from "./zoom.js";

for (const frame of document.querySelectorAll(".sb-frame")) {
  frame.title = "Zoom: Ctrl+wheel, + and -; 0 fits the diagram";
  zoomable(frame);
}
