/** The public bins of a histogram: ends in order, and which are single values. */

import { toNumber } from "../exact.js";
import { binEnds } from "../samples.js";

/** Ends of bins as numbers, from a statistic's parameters. */
export function binsOf({ bins }) {
  const ends = binEnds(bins);
  const lower = Float64Array.from(ends, ([low]) => toNumber(low));
  const upper = Float64Array.from(ends, ([, high]) => toNumber(high));
  return { lower, upper, isAtom: Array.from(lower, (low, bin) => low === upper[bin]) };
}
