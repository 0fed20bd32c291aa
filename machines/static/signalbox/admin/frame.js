// Diagrams in the admin zoom and pan by wheel, touch and keys.

import { enableZoom } from "./zoom.js";

for (const frame of document.querySelectorAll(".sb-frame")) {
  frame.title = "Zoom: Ctrl+wheel, + and -; 0 fits the diagram";
  enableZoom(frame);
}
