/** Fast Fourier transforms of complex numbers, of lengths that are powers of two, in place. */

const PLANS = new Map();

/** The least power of two that is no less. */
export function transformLength(least) {
  let length = 1;
  while (length < least) length *= 2;
  return length;
}

/** Transform in place, without a factor: forward. The inverse is that of real and imaginary part swapped. */
export function transform(re, im) {
  const { swaps, cos, sin } = planOf(re.length);
  const n = re.length;
  for (let at = 0; at < swaps.length; at += 2) {
    const [i, j] = [swaps[at], swaps[at + 1]];
    let kept = re[i];
    re[i] = re[j];
    re[j] = kept;
    kept = im[i];
    im[i] = im[j];
    im[j] = kept;
  }
  let half = 1;
  // An odd number of doublings begins with a round of pairs; all others are done two at a time.
  if (Math.log2(n) % 2 === 1) {
    for (let i = 0; i < n; i += 2) {
      const [a, b] = [re[i], im[i]];
      const [c, d] = [re[i + 1], im[i + 1]];
      re[i] = a + c;
      im[i] = b + d;
      re[i + 1] = a - c;
      im[i + 1] = b - d;
    }
    half = 2;
  }
  for (; half < n; half *= 4) fourfold(re, im, half, cos, sin);
}

/** Two rounds of doubling at once: parts of the length `half` become one of four times that. */
function fourfold(re, im, half, cos, sin) {
  const n = re.length;
  const step = n / (4 * half);
  for (let begin = 0; begin < n; begin += 4 * half) {
    for (let k = 0, at = 0; k < half; k += 1, at += step) {
      const p = begin + k;
      const q = p + half;
      const r = q + half;
      const s = r + half;
      // The parts stand in the order of reversed bits: those of the odd doubling second.
      const w1r = cos[2 * at], w1i = -sin[2 * at];
      const w2r = cos[at], w2i = -sin[at];
      const w3r = cos[3 * at], w3i = -sin[3 * at];
      const br = re[q] * w1r - im[q] * w1i, bi = re[q] * w1i + im[q] * w1r;
      const cr = re[r] * w2r - im[r] * w2i, ci = re[r] * w2i + im[r] * w2r;
      const dr = re[s] * w3r - im[s] * w3i, di = re[s] * w3i + im[s] * w3r;
      const ar = re[p], ai = im[p];
      const er = ar + br, ei = ai + bi, fr = ar - br, fi = ai - bi;
      const gr = cr + dr, gi = ci + di, hr = ci - di, hi = dr - cr;
      re[p] = er + gr;
      im[p] = ei + gi;
      re[q] = fr + hr;
      im[q] = fi + hi;
      re[r] = er - gr;
      im[r] = ei - gi;
      re[s] = fr - hr;
      im[s] = fi - hi;
    }
  }
}

function planOf(n) {
  let plan = PLANS.get(n);
  if (plan === undefined) {
    const swaps = [];
    const bits = Math.log2(n);
    for (let i = 0; i < n; i += 1) {
      let j = 0;
      for (let bit = 0; bit < bits; bit += 1) if (i & (1 << bit)) j |= 1 << (bits - 1 - bit);
      if (j > i) swaps.push(i, j);
    }
    const angle = (k) => (2 * Math.PI * k) / n;
    plan = {
      swaps: Int32Array.from(swaps),
      cos: Float64Array.from({ length: n }, (_, k) => Math.cos(angle(k))),
      sin: Float64Array.from({ length: n }, (_, k) => Math.sin(angle(k))),
    };
    PLANS.set(n, plan);
  }
  return plan;
}
