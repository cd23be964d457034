// From the position of a slider to a number and back. A slider has 1,000 steps whatever it sets.

export const STEPS = 1000;

/** Even steps from one number to another. */
export function linear(low, high) {
  return {
    low,
    high,
    number: (position) => low + ((high - low) * position) / STEPS,
    position: (number) => clamp(((number - low) / (high - low)) * STEPS),
  };
}

/** Steps of an even ratio. */
export function logarithmic(low, high) {
  const span = Math.log(high / low);
  return {
    low,
    high,
    number: (position) => low * Math.exp((span * position) / STEPS),
    position: (number) => (number > 0 ? clamp((Math.log(number / low) / span) * STEPS) : 0),
  };
}

/** Shares between 0 and 1: even in their log odds, so that rare and almost certain can be told. */
export function share(least) {
  const reach = Math.log((1 - least) / least);
  return {
    low: least,
    high: 1 - least,
    number: (position) => 1 / (1 + Math.exp(reach * (1 - (2 * position) / STEPS))),
    position: (number) => clamp((Math.log(number / (1 - number)) / reach + 1) * (STEPS / 2)),
  };
}

function clamp(position) {
  return Math.min(STEPS, Math.max(0, Math.round(position)));
}
