// How long to wait before trying again: full jitter, so that a thousand pages do not come back in step.

const BASE = 500; // ms
const CAP = 30000; // ms

/** A random time below an exponential ceiling, ms. `attempt` counts from 0. */
export function fullJitter(attempt, random = Math.random) {
  return random() * Math.min(CAP, BASE * 2 ** Math.min(attempt, 16));
}
