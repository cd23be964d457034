/** Exact rational numbers: pairs of BigInt, the denominator above 0, in lowest terms. */

/** @typedef {{n: bigint, d: bigint}} Rational */

const LONGEST = 1200;

/** n / d in lowest terms. */
export function rational(n, d = 1n) {
  const sign = d < 0n ? -1n : 1n;
  const common = gcd(n < 0n ? -n : n, d < 0n ? -d : d) || 1n;
  return { n: (sign * n) / common, d: (sign * d) / common };
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

/** Read `12`, `-0.25` or `1/3`; null where a text is anything else. */
export function parseRational(text) {
  if (typeof text !== "string" || text.length > LONGEST) return null;
  const fraction = /^(-?\d+)\/(\d+)$/.exec(text);
  if (fraction) return BigInt(fraction[2]) === 0n ? null : rational(BigInt(fraction[1]), BigInt(fraction[2]));
  const decimal = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
  if (!decimal) return null;
  const digits = decimal[3] ?? "";
  const size = BigInt(decimal[2] + digits);
  return rational(decimal[1] ? -size : size, 10n ** BigInt(digits.length));
}

export const add = (a, b) => rational(a.n * b.d + b.n * a.d, a.d * b.d);
export const subtract = (a, b) => rational(a.n * b.d - b.n * a.d, a.d * b.d);
export const multiply = (a, b) => rational(a.n * b.n, a.d * b.d);
export const divide = (a, b) => rational(a.n * b.d, a.d * b.n);
export const equal = (a, b) => a.n === b.n && a.d === b.d;
/** Below 0, 0 or above 0, as a is below, at or above b. */
export function compare(a, b) {
  const difference = a.n * b.d - b.n * a.d;
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** The nearest float64, ties to even. */
export function toNumber({ n, d }) {
  if (n === 0n) return 0;
  const size = n < 0n ? -n : n;
  // 64 bits of the quotient, the last one set where anything is left: one rounding follows.
  const shift = 64 - (bits(size) - bits(d));
  let quotient = shift >= 0 ? (size << BigInt(shift)) / d : size / (d << BigInt(-shift));
  const left = shift >= 0 ? (size << BigInt(shift)) % d : size % (d << BigInt(-shift));
  if (left) quotient |= 1n;
  const value = Number(quotient);
  const half = Math.trunc(-shift / 2);
  const scaled = value * 2 ** half * 2 ** (-shift - half);
  return n < 0n ? -scaled : scaled;
}

function bits(size) {
  return size.toString(16).length * 4;
}

/** A float64 as the rational number that it is. */
export function ofNumber(value) {
  let exponent = 0;
  let scaled = value;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    exponent += 1;
  }
  return rational(BigInt(scaled), 1n << BigInt(exponent));
}

/** As manifests write it: a decimal where one ends, a fraction otherwise. */
export function format({ n, d }) {
  if (d === 1n) return String(n);
  let rest = d;
  let twos = 0;
  let fives = 0;
  while (rest % 2n === 0n) [rest, twos] = [rest / 2n, twos + 1];
  while (rest % 5n === 0n) [rest, fives] = [rest / 5n, fives + 1];
  if (rest !== 1n) return `${n}/${d}`;
  const places = Math.max(twos, fives);
  const size = ((n < 0n ? -n : n) * 10n ** BigInt(places)) / d;
  const digits = String(size).padStart(places + 1, "0");
  return `${n < 0n ? "-" : ""}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** The next float64 above or below one above 0. */
export const nextUp = (value) => neighbour(value, 1n);
export const nextDown = (value) => neighbour(value, -1n);

function neighbour(value, step) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) + step);
  return view.getFloat64(0);
}

/** The largest integer whose square is at most this one: Newton's steps from above. */
export function rootRoundedDown(square) {
  let root = 1n << BigInt((square.toString(2).length + 1) >> 1);
  for (let next = (root + square / root) >> 1n; next < root; next = (root + square / root) >> 1n) root = next;
  return root;
}

/** The largest float64 whose square is at most a number above 0. */
export function numberRoot(square) {
  const shift = BigInt(Math.max(0, 64 - Math.trunc((bits(square.n) - bits(square.d)) / 2)) + 64);
  const above = rational(rootRoundedDown((square.n << (2n * shift)) / square.d) + 1n, 1n << shift);
  let root = nextUp(toNumber(above));
  for (let exact = ofNumber(root); compare(multiply(exact, exact), square) > 0; exact = ofNumber(root)) root = nextDown(root);
  return root;
}
