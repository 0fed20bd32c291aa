// The diagrams of compared versions: zoom and pan.

import { center } from "../diagram/frames.js";

center();
