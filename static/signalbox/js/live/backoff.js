// Delay before the next attempt, with full jitter, so that a thousand pages do not reconnect in step.

const BASE = 500; // ms
const CAP = 30000; // ms

/** Returns a random time below an exponential ceiling, ms. `attempt` counts from 0. */
export function fullJitter(attempt, random = Math.random) {
  return random() * Math.min(CAP, BASE * 2 ** Math.min(attempt, 16));
}
