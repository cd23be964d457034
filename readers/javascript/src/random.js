/** Random numbers from a seed, the same everywhere: for draws of posteriors, never for noise. */

/** A function that gives numbers from 0 to 1, below 1: xoshiro128**, by Blackman and Vigna. */
export function generator(seed) {
  let mixed = hashOf(String(seed));
  const next = () => {
    // SplitMix, as is usual to fill a state.
    mixed = (mixed + 0x9e3779b9) | 0;
    let z = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) | 0;
  };
  let [a, b, c, d] = [next(), next(), next(), next()];
  const rotated = (x, by) => (x << by) | (x >>> (32 - by));
  const bits = () => {
    const found = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotated(d, 11);
    return found;
  };
  return () => ((bits() >>> 5) * 67108864 + (bits() >>> 6)) / 9007199254740992;
}

/** Numbers from 0 to 1, below 1: by a function that gives them, as `Math.random`, or from a seed. */
export function uniforms(rng) {
  return typeof rng === "function" ? rng : generator(rng);
}

function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

/** Normal numbers from uniform ones, by Box and Muller. */
export function normals(random) {
  let kept = null;
  return () => {
    if (kept !== null) {
      const found = kept;
      kept = null;
      return found;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    kept = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
