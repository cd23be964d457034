/**
 * Messages over whole numbers: weights on a window, that add up to 1. Of two parts L and R the sum has
 * S(s) = sum_l L(l) R(s - l), and what the rest says of the sum, D, says sum_r R(r) D(l + r) of the first part.
 *
 * Windows are cut where at most a share `TAIL` of all is outside, on either side; what comes out of a transform below
 * 0 is 0. As in Python.
 */

import { transform, transformLength } from "./fft.js";

/** The share of a message that is cut at most, on either side. */
export const TAIL = 1e-12;
/** Products of widths up to which sums are worked out term by term. */
const DIRECT = 1500;

/** @typedef {{low: number, weights: Float64Array}} Message From `low` on. */

/** Cut a window, and divide by the sum: the message, and the logarithm of the sum. */
export function normalised(low, weights) {
  let total = 0;
  for (let i = 0; i < weights.length; i += 1) total += weights[i];
  // So many weights below this add up to no more than the share.
  const least = (TAIL / weights.length) * total;
  let [start, stop] = [0, weights.length];
  while (start < stop && !(weights[start] > least)) start += 1;
  while (stop > start && !(weights[stop - 1] > least)) stop -= 1;
  const kept = weights.slice(start, stop);
  for (let i = 0; i < kept.length; i += 1) kept[i] /= total;
  return { message: { low: low + start, weights: kept }, logSum: Math.log(total) };
}

/** A message's weights on another window; 0 where it has none. */
export function placed({ low, weights }, on, width) {
  const found = new Float64Array(width);
  const first = Math.max(0, low - on);
  const last = Math.min(width, low + weights.length - on);
  for (let i = first; i < last; i += 1) found[i] = weights[i + on - low];
  return found;
}

/** Divide weights by the largest, in place. */
export function scaled(weights) {
  let largest = 0;
  for (let i = 0; i < weights.length; i += 1) if (weights[i] > largest) largest = weights[i];
  if (largest > 0) for (let i = 0; i < weights.length; i += 1) weights[i] /= largest;
  return weights;
}

/** @typedef {{message: Message, left?: Part, right?: Part, node?: number}} Part A node, or the sum of two parts. */

/** The sum of two parts, with what its way back needs where that is kept; `work` is about its multiplications. */
export function summed(left, right, isKept) {
  const [l, r] = [left.message.weights, right.message.weights];
  const width = l.length + r.length - 1;
  const isDirect = l.length * r.length <= DIRECT;
  const spectrum = isDirect ? null : spectrumOf(l, r, width, isKept);
  const weights = isDirect ? convolved(l, r) : convolvedBy(spectrum, width);
  const work = isDirect ? l.length * r.length : 10 * spectrum.re.length * Math.log2(spectrum.re.length);
  return { left, right, spectrum: isKept ? spectrum : null, work, ...normalised(left.message.low + right.message.low, weights) };
}

/** What the rest says of both parts, on their windows, from what it says of the sum, on its own. */
export function divided({ left, right, spectrum, message }, outside) {
  const [l, r] = [left.message.weights, right.message.weights];
  const width = l.length + r.length - 1;
  const padded = placed({ low: message.low, weights: outside }, left.message.low + right.message.low, width);
  const parts = spectrum === null
    ? [correlated(r, padded, l.length), correlated(l, padded, r.length)]
    : correlatedBy(spectrum, padded, l.length, r.length);
  return parts.map(scaled);
}

function convolved(l, r) {
  const sums = new Float64Array(l.length + r.length - 1);
  for (let i = 0; i < l.length; i += 1) {
    const weight = l[i];
    for (let j = 0; j < r.length; j += 1) sums[i + j] += weight * r[j];
  }
  return sums;
}

function correlated(other, outside, width) {
  const sums = new Float64Array(width);
  for (let i = 0; i < width; i += 1) {
    let sum = 0;
    for (let j = 0; j < other.length; j += 1) sum += other[j] * outside[i + j];
    sums[i] = sum;
  }
  return sums;
}

/** One transform of both parts: l is real, and r, times `balance`, imaginary. */
function spectrumOf(l, r, width, isKept) {
  const length = transformLength(width);
  const { re, im } = isKept ? { re: new Float64Array(length), im: new Float64Array(length) } : workspace(length, "spectrum");
  // Of parts of like norms neither is rounded by the other's size.
  const balance = Math.sqrt(squares(l) / squares(r));
  re.set(l);
  for (let j = 0; j < r.length; j += 1) im[j] = balance * r[j];
  transform(re, im);
  return { re, im, balance };
}

const WORKSPACES = new Map();

/** Two arrays of zeros that are written anew each time: they are too many to be allocated. */
function workspace(length, name) {
  const key = `${name} ${length}`;
  if (!WORKSPACES.has(key)) WORKSPACES.set(key, { re: new Float64Array(length), im: new Float64Array(length) });
  const found = WORKSPACES.get(key);
  found.re.fill(0);
  found.im.fill(0);
  return found;
}

function squares(weights) {
  let sum = 0;
  for (let i = 0; i < weights.length; i += 1) sum += weights[i] * weights[i];
  return sum;
}

/** The convolution: (l + i b r) by itself is l l - b^2 r r + 2 i b l r. */
function convolvedBy({ re, im, balance }, width) {
  const length = re.length;
  const { re: a, im: b } = workspace(length, "product");
  for (let k = 0; k < length; k += 1) {
    a[k] = re[k] * re[k] - im[k] * im[k];
    b[k] = 2 * re[k] * im[k];
  }
  // Backward: real and imaginary parts change places, before and after.
  transform(b, a);
  const sums = new Float64Array(width);
  const factor = 0.5 / (balance * length);
  for (let k = 0; k < width; k += 1) sums[k] = Math.max(b[k] * factor, 0);
  return sums;
}

/** Both correlations at once: one is the real part, the other the imaginary one. */
function correlatedBy({ re, im }, padded, ofLeft, ofRight) {
  const length = re.length;
  const { re: dr, im: di } = workspace(length, "spectrum");
  dr.set(padded);
  transform(dr, di);
  const { re: a, im: b } = workspace(length, "product");
  for (let k = 0; k < length; k += 1) {
    const other = k === 0 ? 0 : length - k;
    // The spectra of l and b r, conjugated.
    const lr = 0.5 * (re[k] + re[other]);
    const li = -0.5 * (im[k] - im[other]);
    const rr = 0.5 * (im[k] + im[other]);
    const ri = 0.5 * (re[k] - re[other]);
    const [pr, pi] = [dr[k] * rr - di[k] * ri, dr[k] * ri + di[k] * rr];
    const [qr, qi] = [dr[k] * lr - di[k] * li, dr[k] * li + di[k] * lr];
    a[k] = pr - qi;
    b[k] = pi + qr;
  }
  transform(b, a);
  const [first, second] = [new Float64Array(ofLeft), new Float64Array(ofRight)];
  for (let i = 0; i < ofLeft; i += 1) first[i] = Math.max(a[i], 0);
  for (let i = 0; i < ofRight; i += 1) second[i] = Math.max(b[i], 0);
  return [first, second];
}
