// The explorer of a release's page. Made by `npm run build` in readers/javascript: change the sources, not this.
// sources: explorer/answering.js explorer/answers.js explorer/axis.js explorer/column-picture.js explorer/column-section.js explorer/combobox.js explorer/contrast.js explorer/count-control.js explorer/dom.js explorer/downloads.js explorer/explorer.js explorer/fields.js explorer/form.js explorer/lines.js explorer/main.js explorer/moments.js explorer/numbers.js explorer/page-data.js explorer/parts.js explorer/picture.js explorer/pool.js explorer/preparing.js explorer/prior-control.js explorer/priors.js explorer/reading.js explorer/released.js explorer/scales.js explorer/state.js explorer/tables.js explorer/tree-section.js explorer/words.js src/about.js src/blocks.js src/bytes.js src/canonical_json.js src/clipped.js src/clipping.js src/cone_noise.js src/conflict.js src/counts.js src/domains.js src/errors.js src/exact.js src/families.js src/histogram/bins.js src/histogram/column.js src/histogram/emission.js src/histogram/grid.js src/histogram/posterior.js src/histogram/prior.js src/histogram/walk.js src/index.js src/intervals.js src/likelihood.js src/line.js src/manifest.js src/parquet.js src/plan.js src/plan_values.js src/posterior.js src/priors.js src/publication.js src/published_likelihood.js src/published_table.js src/random.js src/reading.js src/release.js src/rules.js src/samples.js src/signature.js src/special.js src/tabulated.js src/thrift.js src/totals.js src/tree/count_tree.js src/tree/fft.js src/tree/hyperparameters.js src/tree/key_tree.js src/tree/matrices.js src/tree/messages.js src/tree/passes.js src/tree/populations.js src/tree/posterior.js src/tree/released_tree.js src/tree/unit.js
// sha256: a3d34a7c5afc62165b06077ae6af4ae91b897745dabbcf2d859b32a3d76093e1
(() => {
  // explorer/contrast.js
  var TAIL = 1e-8;
  var POINTS = [500, 2e3, 8e3];
  var LEAST_MASS = 1 - 1e-5;
  function contrast(first, second, mass) {
    const left = tabulated(first);
    const right = tabulated(second);
    if (left === null || right === null) return null;
    const below = left.high - left.low < right.high - right.low ? (shift) => 1 - left.average((value) => right.below(value - shift)) : (shift) => right.average((value) => left.below(value + shift));
    const ends2 = [(1 - mass) / 2, (1 + mass) / 2];
    const reach2 = [left.low - right.high, left.high - right.low];
    const [lower, median, upper] = [ends2[0], 0.5, ends2[1]].map((share3) => solved(below, share3, ...reach2));
    return {
      greater: 1 - below(0),
      difference: {
        mean: first.mean - second.mean,
        sd: Math.hypot(first.sd, second.sd),
        median,
        lower,
        upper
      },
      ratio: ratio(left, right, ends2)
    };
  }
  function ratio(left, right, ends2) {
    if (right.low <= 0 || left.low < 0) return null;
    const below = left.high / left.low < right.high / right.low ? (logarithm) => 1 - left.average((value) => right.below(value / Math.exp(logarithm))) : (logarithm) => right.average((value) => left.below(value * Math.exp(logarithm)));
    const reach2 = [Math.log(Math.max(left.low, 1e-300) / right.high), Math.log(left.high / right.low)];
    const [lower, median, upper] = [ends2[0], 0.5, ends2[1]].map((share3) => Math.exp(solved(below, share3, ...reach2)));
    return { median, lower, upper };
  }
  function tabulated(law) {
    const low = law.quantile(TAIL);
    const high = law.quantile(1 - TAIL);
    if (!(Number.isFinite(low) && Number.isFinite(high) && low < high)) return null;
    for (const size of POINTS) {
      const table2 = tabulatedAt(law, low, high, size);
      if (Math.abs(table2.mass - 1) <= 1 - LEAST_MASS) return table2;
    }
    return null;
  }
  function tabulatedAt(law, low, high, size) {
    const width2 = high - low;
    const step = 1 / size;
    const nodes = Array.from(
      { length: size + 1 },
      (_, index) => low + width2 * Math.sin(Math.PI * index / size / 2) ** 2
    );
    const densities = law.density(nodes);
    const slopes = nodes.map((_, index) => densities[index] * width2 * (Math.PI / 2) * Math.sin(Math.PI * index / size));
    slopes[0] = Math.max(0, 3 * slopes[1] - 3 * slopes[2] + slopes[3]);
    slopes[size] = Math.max(0, 3 * slopes[size - 1] - 3 * slopes[size - 2] + slopes[size - 3]);
    const cumulated2 = [0];
    for (let index = 0; index < size; index += 1) {
      const [before2, from, to, after] = [-1, 0, 1, 2].map(
        (offset) => slopes[index + offset] ?? slopes[index + (offset < 0 ? 0 : 1)]
      );
      cumulated2.push(cumulated2[index] + step / 24 * (13 * (from + to) - before2 - after));
    }
    const mass = cumulated2[size];
    return {
      low,
      high,
      mass,
      below(value) {
        if (value <= low) return 0;
        if (value >= high) return 1;
        const at = 2 / Math.PI * Math.asin(Math.sqrt((value - low) / width2)) * size;
        const index = Math.min(Math.floor(at), size - 1);
        return hermite(cumulated2, slopes, index, at - index, step) / mass;
      },
      average(of2) {
        let sum = (slopes[0] * of2(nodes[0]) + slopes[size] * of2(nodes[size])) / 2;
        for (let index = 1; index < size; index += 1) sum += slopes[index] * of2(nodes[index]);
        return sum * step / mass;
      }
    };
  }
  function hermite(values, slopes, index, share3, step) {
    const rest = 1 - share3;
    return (1 + 2 * share3) * rest * rest * values[index] + share3 * rest * rest * step * slopes[index] + share3 * share3 * (3 - 2 * share3) * values[index + 1] - share3 * share3 * rest * step * slopes[index + 1];
  }
  function solved(increasing, value, low, high) {
    for (let turn = 0; turn < 60; turn += 1) {
      const middle = (low + high) / 2;
      if (increasing(middle) < value) low = middle;
      else high = middle;
      if (high - low <= 1e-13 * Math.max(Math.abs(low), Math.abs(high))) break;
    }
    return (low + high) / 2;
  }

  // src/errors.js
  var ReleaseError = class extends Error {
    /**
     * @param {string} code One of `manifest`, `file`, `signature`, `withdrawn`, `about`, `statistic`, `cell`, `prior`, `method`,
     *   `clipping`, `resolution`, `usage`.
     * @param {string} message Which rule, at which place, and what to do; at most 500 characters.
     */
    constructor(code, message) {
      super(message.length > 500 ? `${message.slice(0, 497)}...` : message);
      this.name = "ReleaseError";
      this.code = code;
    }
  };
  function shown(text) {
    const plain = String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "?");
    return plain.length > 80 ? `${plain.slice(0, 77)}...` : plain;
  }

  // src/bytes.js
  var K = new Uint32Array([
    1116352408,
    1899447441,
    3049323471,
    3921009573,
    961987163,
    1508970993,
    2453635748,
    2870763221,
    3624381080,
    310598401,
    607225278,
    1426881987,
    1925078388,
    2162078206,
    2614888103,
    3248222580,
    3835390401,
    4022224774,
    264347078,
    604807628,
    770255983,
    1249150122,
    1555081692,
    1996064986,
    2554220882,
    2821834349,
    2952996808,
    3210313671,
    3336571891,
    3584528711,
    113926993,
    338241895,
    666307205,
    773529912,
    1294757372,
    1396182291,
    1695183700,
    1986661051,
    2177026350,
    2456956037,
    2730485921,
    2820302411,
    3259730800,
    3345764771,
    3516065817,
    3600352804,
    4094571909,
    275423344,
    430227734,
    506948616,
    659060556,
    883997877,
    958139571,
    1322822218,
    1537002063,
    1747873779,
    1955562222,
    2024104815,
    2227730452,
    2361852424,
    2428436474,
    2756734187,
    3204031479,
    3329325298
  ]);
  function sha256(data) {
    const state = new Uint32Array([
      1779033703,
      3144134277,
      1013904242,
      2773480762,
      1359893119,
      2600822924,
      528734635,
      1541459225
    ]);
    const words = new Uint32Array(64);
    const whole2 = data.length - data.length % 64;
    for (let at = 0; at < whole2; at += 64) compress(state, words, data, at);
    const rest = data.length - whole2;
    const tail = new Uint8Array(rest < 56 ? 64 : 128);
    tail.set(data.subarray(whole2));
    tail[rest] = 128;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(data.length / 536870912));
    view.setUint32(tail.length - 4, data.length * 8 >>> 0);
    for (let at = 0; at < tail.length; at += 64) compress(state, words, tail, at);
    return [...state].map((word) => word.toString(16).padStart(8, "0")).join("");
  }
  function compress(state, words, data, at) {
    for (let i = 0; i < 16; i += 1) {
      const j = at + 4 * i;
      words[i] = data[j] << 24 | data[j + 1] << 16 | data[j + 2] << 8 | data[j + 3];
    }
    for (let i = 16; i < 64; i += 1) {
      const x = words[i - 15];
      const y = words[i - 2];
      const s0 = (x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3;
      const s1 = (y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10;
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i += 1) {
      const s1 = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
      const first = h + s1 + (e & f ^ ~e & g) + K[i] + words[i] | 0;
      const s0 = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
      const second = s0 + (a & b ^ a & c ^ b & c) | 0;
      h = g;
      g = f;
      f = e;
      e = d + first | 0;
      d = c;
      c = b;
      b = a;
      a = first + second | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
  function encodeText(text) {
    return new TextEncoder().encode(text);
  }
  function decodeText(data) {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  }
  function decodeBase64(text) {
    if (typeof text !== "string" || !/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return null;
    const binary = atob(text);
    if (btoa(binary) !== text) return null;
    return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  }
  function equalBytes(first, second) {
    if (first.length !== second.length) return false;
    for (let i = 0; i < first.length; i += 1) if (first[i] !== second[i]) return false;
    return true;
  }

  // src/canonical_json.js
  var DEEPEST = 64;
  function encode(document2, depth = 0) {
    if (depth > DEEPEST) throw new TypeError("too deep");
    if (document2 === null || typeof document2 === "boolean") return String(document2);
    if (typeof document2 === "number") {
      if (!Number.isSafeInteger(document2) || Object.is(document2, -0)) throw new TypeError("no exact integer");
      return String(document2);
    }
    if (typeof document2 === "string") {
      if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(document2)) {
        throw new TypeError("no text");
      }
      return JSON.stringify(document2);
    }
    if (Array.isArray(document2)) return `[${document2.map((entry) => encode(entry, depth + 1)).join(",")}]`;
    const keys = Object.keys(document2).sort(byCodePoint);
    return `{${keys.map((key) => `${encode(key, depth + 1)}:${encode(document2[key], depth + 1)}`).join(",")}}`;
  }
  function decode(data) {
    try {
      const document2 = JSON.parse(decodeText(data));
      return equalBytes(encodeText(encode(document2)), data) ? document2 : null;
    } catch {
      return null;
    }
  }
  function byCodePoint(first, second) {
    const length = Math.min(first.length, second.length);
    for (let i = 0; i < length; i += 1) {
      const a = first.charCodeAt(i);
      const b = second.charCodeAt(i);
      if (a !== b) {
        const high = (unit) => unit >= 55296 && unit <= 57343 ? unit + 65536 : unit;
        return high(a) - high(b);
      }
    }
    return first.length - second.length;
  }

  // src/signature.js
  var PEM = /^-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----\s*$/;
  var PREFIX = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0];
  var RELEASE = { name: "release", prefix: "" };
  async function checkSignature(manifest, publicKeys, kind = RELEASE) {
    const { signature } = manifest;
    if (publicKeys === void 0 || publicKeys === null) return signature === null ? "unsigned" : "not_checked";
    const keys = publicKeys.map(rawKey);
    if (keys.length === 0 || keys.includes(null)) throw refused("a pinned public key is no Ed25519 key in PEM or base64");
    if (signature === null) throw refused(`the ${kind.name} is not signed, and a signature is demanded`);
    const candidates = keys.filter((key) => keyId(key) === signature.key_id);
    if (candidates.length === 0) throw refused(`the ${kind.name} is signed with the key ${signature.key_id}, which is not pinned`);
    const value = decodeBase64(signature.value);
    const message = encodeText(kind.prefix + encode({ ...manifest, signature: null }));
    for (const key of candidates) if (await fits(key, value, message)) return "checked";
    throw refused(`the ${kind.name}'s signature is wrong: ${signature.key_id} did not sign this manifest`);
  }
  function keyId(raw) {
    return sha256(raw).slice(0, 16);
  }
  function rawKey(text) {
    if (typeof text !== "string") return null;
    const pem = PEM.exec(text.trim());
    const bytes = decodeBase64(pem ? pem[1].replace(/\s/g, "") : text.trim());
    if (bytes === null) return null;
    if (!pem) return bytes.length === 32 ? bytes : null;
    return bytes.length === 44 && PREFIX.every((byte, i) => bytes[i] === byte) ? bytes.subarray(12) : null;
  }
  async function fits(key, value, message) {
    const subtle = globalThis.crypto?.subtle;
    try {
      const imported = await subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
      return await subtle.verify({ name: "Ed25519" }, imported, value, message);
    } catch {
      throw refused("cannot check signatures here: this browser has no Ed25519 in WebCrypto");
    }
  }
  function refused(message) {
    return new ReleaseError("signature", message);
  }

  // src/about.js
  var ABOUT = { name: "release's description", prefix: "suffice about 1\n" };
  var LARGEST = 256 * 2 ** 10;
  var MOST = 99;
  var LINES = { title: 100, description: 2e3, licence: 300, contact: 300, source: 300, label: 100, unit: 40 };
  var FIELDS = "about checksum created format_version manifest_sha256 number release_id replaces signature";
  var UNSEEN = /(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/u;
  async function readAbout(given, manifest, manifestBytes, publicKeys) {
    let number2 = 0;
    while (number2 < MOST && given.has(`about-${number2 + 1}.json`)) number2 += 1;
    if (number2 === 0) return {};
    const bytes = given.get(`about-${number2}.json`);
    const before2 = given.get(`about-${number2 - 1}.json`);
    const stated = bytes instanceof Uint8Array && bytes.length <= LARGEST ? decode(bytes) : null;
    const fits2 = isMapping(stated) && Object.keys(stated).sort().join(" ") === FIELDS && stated.format_version === 1 && stated.release_id === manifest.release_id && stated.manifest_sha256 === sha256(manifestBytes) && stated.number === number2 && stated.replaces === (number2 === 1 ? null : sha256(before2)) && stated.checksum === sha256(encodeText(encode({ ...stated, checksum: null, signature: null }))) && (stated.signature !== null || manifest.signature === null) && areWords(stated.about, manifest);
    if (!fits2) throw new ReleaseError("about", `about-${number2}.json stands beside the manifest, and holds no words of this release`);
    await checkSignature(stated, publicKeys, ABOUT);
    return stated.about;
  }
  function areWords(about, manifest) {
    const { statistics = {}, keys = {}, ...rest } = isMapping(about) ? about : { "": null };
    const names = new Set(manifest.statistics.map(({ name }) => name));
    const stated = [manifest, ...manifest.statistics].flatMap(({ groups = [] }) => groups);
    const columns = new Set(stated.map(({ column }) => column));
    return areLines(rest, ["title", "description", "licence", "contact", "source"]) && every(
      statistics,
      (name, { values = {}, parameters = {}, ...words }) => names.has(name) && isNumber(words) && every(values, isLabel) && every(parameters, (_, one) => isNumber(one))
    ) && every(
      keys,
      (column, { values = {}, ...words }) => columns.has(column) && areLines(words, ["label", "unit", "description"]) && every(values, isLabel)
    );
  }
  function isNumber({ digits = 0, ...words }) {
    return Number.isInteger(digits) && digits >= 0 && digits <= 12 && areLines(words, ["label", "unit", "description"]);
  }
  function isLabel(_, text) {
    return isLine(text, LINES.label);
  }
  function areLines(words, known) {
    return Object.entries(words).every(([name, text]) => known.includes(name) && isLine(text, LINES[name]));
  }
  function isLine(text, most) {
    return typeof text === "string" && text.trim() !== "" && [...text].length <= most && !UNSEEN.test(text);
  }
  function every(mapping, check) {
    return isMapping(mapping) && Object.entries(mapping).every(([name, one]) => (one ?? null) !== null && check(name, one));
  }
  function isMapping(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }

  // src/exact.js
  var LONGEST = 1200;
  function rational(n, d = 1n) {
    const sign = d < 0n ? -1n : 1n;
    const common = gcd(n < 0n ? -n : n, d < 0n ? -d : d) || 1n;
    return { n: sign * n / common, d: sign * d / common };
  }
  function gcd(a, b) {
    while (b) [a, b] = [b, a % b];
    return a;
  }
  function parseRational(text) {
    if (typeof text !== "string" || text.length > LONGEST) return null;
    const fraction = /^(-?\d+)\/(\d+)$/.exec(text);
    if (fraction) return BigInt(fraction[2]) === 0n ? null : rational(BigInt(fraction[1]), BigInt(fraction[2]));
    const decimal2 = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
    if (!decimal2) return null;
    const digits = decimal2[3] ?? "";
    const size = BigInt(decimal2[2] + digits);
    return rational(decimal2[1] ? -size : size, 10n ** BigInt(digits.length));
  }
  var add = (a, b) => rational(a.n * b.d + b.n * a.d, a.d * b.d);
  var subtract = (a, b) => rational(a.n * b.d - b.n * a.d, a.d * b.d);
  var multiply = (a, b) => rational(a.n * b.n, a.d * b.d);
  var divide = (a, b) => rational(a.n * b.d, a.d * b.n);
  function compare(a, b) {
    const difference = a.n * b.d - b.n * a.d;
    return difference < 0n ? -1 : Number(difference > 0n);
  }
  function toNumber({ n, d }) {
    if (n === 0n) return 0;
    const size = n < 0n ? -n : n;
    const shift = 64 - (bits(size) - bits(d));
    let quotient = shift >= 0 ? (size << BigInt(shift)) / d : size / (d << BigInt(-shift));
    const left = shift >= 0 ? (size << BigInt(shift)) % d : size % (d << BigInt(-shift));
    if (left) quotient |= 1n;
    const value = Number(quotient);
    const half = Math.trunc(-shift / 2);
    const scaled3 = value * 2 ** half * 2 ** (-shift - half);
    return n < 0n ? -scaled3 : scaled3;
  }
  function bits(size) {
    return size.toString(16).length * 4;
  }
  function ofNumber(value) {
    let exponent = 0;
    let scaled3 = value;
    while (!Number.isInteger(scaled3)) {
      scaled3 *= 2;
      exponent += 1;
    }
    return rational(BigInt(scaled3), 1n << BigInt(exponent));
  }
  function format({ n, d }) {
    if (d === 1n) return String(n);
    let rest = d;
    let twos = 0;
    let fives = 0;
    while (rest % 2n === 0n) [rest, twos] = [rest / 2n, twos + 1];
    while (rest % 5n === 0n) [rest, fives] = [rest / 5n, fives + 1];
    if (rest !== 1n) return `${n}/${d}`;
    const places = Math.max(twos, fives);
    const size = (n < 0n ? -n : n) * 10n ** BigInt(places) / d;
    const digits = String(size).padStart(places + 1, "0");
    return `${n < 0n ? "-" : ""}${digits.slice(0, -places)}.${digits.slice(-places)}`;
  }
  var nextUp = (value) => neighbour(value, 1n);
  var nextDown = (value) => neighbour(value, -1n);
  function neighbour(value, step) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    view.setBigUint64(0, view.getBigUint64(0) + step);
    return view.getFloat64(0);
  }
  function rootRoundedDown(square) {
    let root2 = 1n << BigInt(square.toString(2).length + 1 >> 1);
    for (let next = root2 + square / root2 >> 1n; next < root2; next = root2 + square / root2 >> 1n) root2 = next;
    return root2;
  }
  function numberRoot(square) {
    const shift = BigInt(Math.max(0, 64 - Math.trunc((bits(square.n) - bits(square.d)) / 2)) + 64);
    const above = rational(rootRoundedDown((square.n << 2n * shift) / square.d) + 1n, 1n << shift);
    let root2 = nextUp(toNumber(above));
    for (let exact = ofNumber(root2); compare(multiply(exact, exact), square) > 0; exact = ofNumber(root2)) root2 = nextDown(root2);
    return root2;
  }

  // src/plan_values.js
  function number(text, place) {
    const found = parseRational(text);
    if (found === null) throw refused2(place, "it is no exact number");
    return found;
  }
  function integer(text, place) {
    const found = number(text, place);
    if (found.d !== 1n) throw refused2(place, "it is no whole number");
    return found.n;
  }
  function refused2(place, rule) {
    return new ReleaseError("manifest", `the manifest is corrupt: ${place}: ${rule}`);
  }
  function onlyKeys(mapping, required, optional, place) {
    const fits2 = isMapping2(mapping) && required.every((key) => Object.hasOwn(mapping, key)) && Object.keys(mapping).every((key) => required.includes(key) || optional.includes(key));
    if (!fits2) throw refused2(place, "its keys are not those that the format states");
  }
  function isMapping2(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }

  // src/cone_noise.js
  var CONE_NOISE = "cone_noise";
  var FAMILIES = ["linear_regression", "multivariate_normal"];
  function asksForCone(entry, place) {
    if (entry.noise === void 0) return false;
    if (entry.noise !== "cone" || !FAMILIES.includes(entry.family)) throw refused2(`${place}.noise`, "it is no noise of this family");
    return true;
  }
  function coneFields(entry, { measure, amount }, { rows, replaces }, place) {
    if (measure !== "epsilon") throw refused2(`${place}.noise`, "noise on a cone is of epsilon");
    if (entry.moment_weight !== void 0) throw refused2(`${place}.moment_weight`, "on a cone there is none");
    const columns = entry.family === "linear_regression" ? { ...entry.predictors, ...entry.outcome } : entry.columns;
    if (!isMapping2(columns)) throw refused2(place, "it has no columns");
    const rate2 = divide(amount, rational(BigInt(rows) * (replaces ? 2n : 1n)));
    const steps2 = 2n ** integer(entry.lattice_bits, `${place}.lattice_bits`);
    return {
      cone_noise: { rate: format(rate2), columns: Object.keys(columns).length, linear: entry.intercept !== false, steps: String(steps2) }
    };
  }
  function pairsOf({ columns, linear: linear2 }) {
    const pairs = [];
    for (let i = 0; i <= columns; i += 1) for (let j = i; j <= columns; j += 1) if (linear2 || i > 0 || j === 0) pairs.push([i, j]);
    return pairs;
  }
  function coneSize(noise) {
    return pairsOf(noise).length;
  }
  function coneVariance(noise, weights) {
    const pairs = pairsOf(noise);
    const t = pairs.length;
    const dimension = noise.columns + (noise.linear ? 2 : 1);
    const inBall = dimension / (dimension + 2);
    const unit = 2 * (Number(noise.steps) ** 2 / toNumber(parseRational(noise.rate))) ** 2;
    const mean = (i) => i === 0 ? 1 : inBall;
    const covariance = ([i, j], [k, l]) => {
      if (i === k && j === l) {
        if (i !== j) return t * (t + 1) * mean(i) * inBall / dimension;
        const fourth = i === 0 ? 1 : dimension / (dimension + 4);
        return t * (t + 1) * fourth - (t * mean(i)) ** 2;
      }
      return i === j && k === l ? t * mean(i) * mean(k) : 0;
    };
    let variance = 0;
    for (const [first, a] of weights) for (const [second, b] of weights) variance += a * b * covariance(pairs[first], pairs[second]);
    return unit * variance;
  }

  // src/domains.js
  var MOST_CELLS = 1e7;
  var MOST_LISTED = 1e5;
  var DAY = 864e5;
  function group(column, domain) {
    const head = { column };
    if (Array.isArray(domain)) {
      const keys2 = keysOf(domain, column);
      return { size: keys2.length, stated: { ...head, kind: "list", every: null, keys: keys2 } };
    }
    if (domain?.range) {
      const [first, last] = domain.range.map((end) => integer(end, `groups.${shown(column)}`));
      const size = Number(last - first + 1n);
      if (!(size >= 1 && size <= MOST_CELLS)) throw refused2(`groups.${shown(column)}`, "it is no range");
      return { size, stated: { ...head, kind: "range", first: String(first), last: String(last) } };
    }
    const keys = keysOf(domain, column);
    return { size: keys.length, stated: { ...head, kind: "period", every: domain.every, keys } };
  }
  function keysOf(domain, place) {
    const wrong = () => refused2(shown(place), "it is no domain");
    if (Array.isArray(domain)) {
      if (domain.length === 0 || !domain.every((key) => typeof key === "string") || new Set(domain).size !== domain.length) {
        throw wrong();
      }
      return domain;
    }
    if (domain?.range) {
      const [first, last] = domain.range.map((end) => Number(integer(end, place)));
      if (!(last >= first && last - first < MOST_LISTED)) throw wrong();
      return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
    }
    if (typeof domain?.from !== "string" || typeof domain?.to !== "string") throw wrong();
    const keys = [];
    let start2 = periodStart(domain.from, domain.every);
    for (let key = domain.from; keys.length < MOST_LISTED; key = label(start2, domain.every)) {
      if (start2 === null || label(start2, domain.every) !== key) throw wrong();
      keys.push(key);
      if (key === domain.to) return keys;
      if (start2 > periodStart(domain.to, domain.every)) throw wrong();
      start2 = following(start2, domain.every);
    }
    throw wrong();
  }
  function periodStart(text, every2) {
    const parts = { year: /^(\d{4})$/, month: /^(\d{4})-(\d{2})$/, day: /^(\d{4})-(\d{2})-(\d{2})$/, week: /^(\d{4})-W(\d{2})$/ }[every2];
    const found = parts?.exec(text);
    if (!found) return null;
    const [year, second = 1, third = 1] = found.slice(1).map(Number);
    if (every2 === "week") {
      const first = utc(year, 0, 4);
      return first - (new Date(first).getUTCDay() + 6) % 7 * DAY + (second - 1) * 7 * DAY;
    }
    return utc(year, second - 1, third);
  }
  function label(start2, every2) {
    if (every2 === "week") {
      const thursday = new Date(start2 + 3 * DAY);
      const year = thursday.getUTCFullYear();
      const week = Math.floor((thursday.getTime() - utc(year, 0, 1)) / DAY / 7) + 1;
      return `${String(year).padStart(4, "0")}-W${String(week).padStart(2, "0")}`;
    }
    return new Date(start2).toISOString().slice(0, { year: 4, month: 7, day: 10 }[every2]);
  }
  function following(start2, every2) {
    if (every2 === "day" || every2 === "week") return start2 + (every2 === "day" ? 1 : 7) * DAY;
    const date = new Date(start2);
    return every2 === "month" ? utc(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) : utc(date.getUTCFullYear() + 1, 0, 1);
  }
  function utc(year, month, day) {
    const date = /* @__PURE__ */ new Date(0);
    date.setUTCFullYear(year, month, day);
    return date.getTime();
  }

  // src/samples.js
  var [MOST_DRAWS, FEWEST_POINTS, MOST_POINTS] = [1000n, 3n, 4097n];
  var LEAST_SCALE = 2n ** 20n;
  var LARGEST_SCALE = 2n ** 46n;
  var LARGEST_RANGE = 2n ** 62n;
  var BELOW_LOSS = rational(2n ** 48n - 1n, 2n ** 48n);
  function isSampled({ mechanism }) {
    return mechanism === "exponential";
  }
  function sampleFields(sample2, { measure, amount }, stated, place) {
    onlyKeys(sample2, ["draws", "grid", "prior", "within"], [], `${place}.sample`);
    const draws = integer(sample2.draws, `${place}.sample.draws`);
    const grid = integer(sample2.grid, `${place}.sample.grid`);
    if (draws < 1n || draws > MOST_DRAWS) throw refused2(`${place}.sample.draws`, "it is no number of draws");
    if (grid < FEWEST_POINTS || grid > MOST_POINTS) throw refused2(`${place}.sample.grid`, "it is no number of points");
    const { within: within2, prior } = sample2;
    if (!Array.isArray(within2) || within2.length !== 2 || typeof prior !== "string") throw refused2(`${place}.sample`, "it is no sample");
    const [lower, upper] = within2.map((end) => number(end, `${place}.sample.within`));
    if (compare(lower, upper) >= 0) throw refused2(`${place}.sample.within`, "it is no interval");
    const range = integer(stated.range_sensitivity, `${place}.range_sensitivity`);
    if (range < 1n) throw refused2(`${place}.range_sensitivity`, "it is below 1");
    if (range > LARGEST_RANGE) throw refused2(`${place}.range_sensitivity`, "it is above 2^62");
    const scale2 = scaleOf(range, draws, { measure, amount }, LEAST_SCALE);
    if (scale2 > LARGEST_SCALE) throw refused2(`${place}.scale`, "it is above 2^46");
    return {
      draws: Number(draws),
      grid: Number(grid),
      within: [format(lower), format(upper)],
      prior,
      range_sensitivity: String(range),
      scale: String(scale2),
      temperature: format(rational(scale2, LEAST_SCALE))
    };
  }
  var [FEWEST_BINS, MOST_BINS] = [2, 4096];
  var QUANTILE_UNIT = 10000n;
  function isQuantile(entry) {
    return isSampled(entry) && entry.quantile !== void 0;
  }
  function numberOfPoints(entry) {
    return isQuantile(entry) ? binEnds(entry.parameters.bins).length : entry.grid;
  }
  function binEnds({ edges, atoms }) {
    const inner = edges.map((edge2) => number(edge2, "bins.edges"));
    const alone = atoms.map((atom) => number(atom, "bins.atoms"));
    const points = [...inner, ...alone.filter((atom) => !inner.some((edge2) => compare(atom, edge2) === 0))].sort(compare);
    const isAtom = (point) => alone.some((atom) => compare(atom, point) === 0);
    return points.flatMap((point, at) => [
      ...isAtom(point) ? [[point, point]] : [],
      ...at + 1 < points.length ? [[point, points[at + 1]]] : []
    ]);
  }
  function binLabels({ bins, atoms, lower, upper }, place = "statistics") {
    const isList = (texts) => Array.isArray(texts) && texts.every((text) => typeof text === "string");
    const wrong = () => refused2(`${place}.bins`, "they are no bins");
    if (!isList(bins) || !isList(atoms) || bins.length < 2) throw wrong();
    const [edges, alone] = [bins, atoms].map((texts) => texts.map((text) => number(text, `${place}.bins`)));
    const rises = (numbers) => numbers.every((one, i) => i === 0 || compare(numbers[i - 1], one) < 0);
    const isWithin = (one) => compare(edges[0], one) <= 0 && compare(one, edges.at(-1)) <= 0;
    if (!rises(edges) || !rises(alone) || !alone.every(isWithin)) throw wrong();
    const ends2 = [lower, upper].map((end) => number(end, `${place}.bounds`));
    if (compare(ends2[0], edges[0]) !== 0 || compare(ends2[1], edges.at(-1)) !== 0) throw wrong();
    const all = binEnds({ edges: bins, atoms });
    if (all.length < FEWEST_BINS || all.length > MOST_BINS) throw wrong();
    const isAtom = (point) => alone.some((atom) => compare(atom, point) === 0);
    return all.map(([begins, stops], i) => {
      if (compare(begins, stops) === 0) return `{${format(begins)}}`;
      const holdsUpper = i === all.length - 1 && !isAtom(stops);
      return `${isAtom(begins) ? "(" : "["}${format(begins)}, ${format(stops)}${holdsUpper ? "]" : ")"}`;
    });
  }
  function quantileFields(entry, { measure, amount }, terms, stated, place) {
    const { sample: sample2, bins, atoms } = entry;
    onlyKeys(sample2, ["draws", "quantile"], [], `${place}.sample`);
    const draws = integer(sample2.draws, `${place}.sample.draws`);
    if (draws < 1n || draws > MOST_DRAWS) throw refused2(`${place}.sample.draws`, "it is no number of draws");
    const quantile = number(sample2.quantile, `${place}.sample.quantile`);
    const { n: part, d: whole2 } = quantile;
    if (part < 1n || part >= whole2 || QUANTILE_UNIT % whole2 !== 0n) throw refused2(`${place}.sample.quantile`, "it is no quantile");
    const categories = binLabels(entry, place);
    const nBins = categories.length;
    const farther = part > whole2 - part ? part : whole2 - part;
    const moved2 = !terms.replaces ? farther : terms.cells === 1 ? whole2 : 2n * farther;
    const rows = entry.rows_of === "units" ? 1 : terms.rows;
    const range = moved2 * BigInt(rows) * BigInt(Math.min(2, nBins - 1)) * LEAST_SCALE;
    if (range > LARGEST_RANGE) throw refused2(`${place}.range_sensitivity`, "it is above 2^62");
    const scale2 = scaleOf(range, draws, { measure, amount }, 1n);
    if (scale2 > LARGEST_SCALE) throw refused2(`${place}.scale`, "it is above 2^46");
    const [lower, upper] = [entry.lower, entry.upper].map((end) => format(number(end, `${place}.bounds`)));
    return {
      quantile: format(quantile),
      draws: Number(draws),
      range_sensitivity: String(range),
      scale: String(scale2),
      rank_scale: format(rational(scale2, LEAST_SCALE * whole2)),
      parameters: { categories, lower, upper, lattice_bits: null, bins: { edges: bins, atoms } }
    };
  }
  function scaleOf(range, draws, { measure, amount }, floor) {
    const left = multiply(amount, BELOW_LOSS);
    const ofRho = divide(rational(draws * range * range, 8n), left);
    const { n, d } = divide(rational(draws * range), left);
    const least = (measure === "rho" ? rootRoundedDown(ofRho.n / ofRho.d) : n / d) + 1n;
    return least < floor ? floor : least;
  }
  function gridPoint({ within: within2, grid }, position) {
    const [lower, upper] = within2.map((end) => number(end, "within"));
    const step = divide(subtract(upper, lower), rational(BigInt(grid - 1)));
    return toNumber(add(lower, multiply(step, rational(position))));
  }
  function noStatistics(name) {
    return new ReleaseError("statistic", `${name} is a posterior sample: there are no statistics in it; samples() gives its draws`);
  }

  // src/thrift.js
  var DEEPEST2 = 12;
  var [TRUE, FALSE, BYTE, I16, I32, I64, BINARY, LIST, STRUCT] = [1, 2, 3, 4, 5, 6, 8, 9, 12];
  var ThriftReader = class {
    constructor(data, position, end) {
      this.data = data;
      this.position = position;
      this.end = end;
      this.depth = 0;
    }
    /** A structure: a Map of its fields by number. */
    struct() {
      this.enter();
      const fields = /* @__PURE__ */ new Map();
      let number2 = 0;
      for (let head = this.byte(); head !== 0; head = this.byte()) {
        number2 = head >> 4 ? number2 + (head >> 4) : this.integer();
        if (fields.has(number2)) throw malformed();
        fields.set(number2, this.value(head & 15));
      }
      this.depth -= 1;
      return fields;
    }
    enter() {
      this.depth += 1;
      if (this.depth > DEEPEST2) throw malformed();
    }
    value(kind) {
      if (kind === TRUE || kind === FALSE) return kind === TRUE;
      if (kind === BYTE) return this.byte();
      if (kind === I16 || kind === I32 || kind === I64) return this.integer();
      if (kind === BINARY) return this.bytes(this.unsigned());
      if (kind === STRUCT) return this.struct();
      if (kind !== LIST) throw malformed();
      const head = this.byte();
      const size = head >> 4 < 15 ? head >> 4 : this.unsigned();
      if (size > this.end - this.position) throw malformed();
      this.enter();
      const found = [];
      for (let i = 0; i < size; i += 1) found.push(this.element(head & 15));
      this.depth -= 1;
      return found;
    }
    element(kind) {
      return kind === TRUE || kind === FALSE ? this.byte() === TRUE : this.value(kind);
    }
    byte() {
      if (this.position >= this.end) throw malformed();
      this.position += 1;
      return this.data[this.position - 1];
    }
    bytes(size) {
      if (size > this.end - this.position) throw malformed();
      this.position += size;
      return this.data.subarray(this.position - size, this.position);
    }
    /** Seven bits a byte, the lowest first; above 2^53 nothing that Parquet counts is real. */
    unsigned() {
      let number2 = 0;
      for (let scale2 = 1; scale2 < 2 ** 64; scale2 *= 128) {
        const byte = this.byte();
        number2 += (byte & 127) * scale2;
        if (byte < 128) {
          if (!Number.isSafeInteger(number2)) throw malformed();
          return number2;
        }
      }
      throw malformed();
    }
    /** A signed number: its sign is the last bit. */
    integer() {
      const number2 = this.unsigned();
      return number2 % 2 ? -(number2 + 1) / 2 : number2 / 2;
    }
  };
  function malformed() {
    return new RangeError("not in Thrift's compact form");
  }

  // src/parquet.js
  var ROW_GROUP = 2 ** 20;
  var PAGE_HEADER = 64;
  var SMALLEST_PAGE = 2 ** 13;
  var [INT64, DOUBLE, TEXT, FIXED] = [2, 5, 6, 7];
  var [PLAIN, LEVELS] = [0, 3];
  var MAGIC = encodeText("PAR1");
  var LIMITS = {
    int64: [-(2n ** 63n), 2n ** 63n - 1n],
    "decimal128(38, 0)": [1n - 10n ** 38n, 10n ** 38n - 1n]
  };
  function readValues(data, statistic, groups) {
    const refuse = (rule) => {
      throw new ReleaseError("file", `the file of ${shown(statistic.name)} is corrupt: ${rule}`);
    };
    let found;
    try {
      found = layout(data, statistic, groups, refuse);
    } catch (error) {
      if (error instanceof ReleaseError) throw error;
      refuse("it is no readable Parquet file, or not one of this format");
    }
    const nCells = groups.reduce((product, group3) => product * group3.keys.length, 1);
    const nRows = nCells * valuesOfCell(statistic);
    if (isSampled(statistic)) return readPoints(data, statistic, groups, found, nRows, refuse);
    const values = statistic.value_type === "int64" ? new BigInt64Array(nRows) : new Array(nRows);
    const total = statistic.partition_total === null ? null : BigInt(statistic.partition_total);
    const [lowest, highest3] = LIMITS[statistic.value_type];
    let done = 0;
    for (const { rows, spans } of found) {
      const own = joined(data, spans.get("value"));
      const size = statistic.value_type === "int64" ? 8 : 16;
      const view = new DataView(own.buffer, own.byteOffset, own.length);
      const estimates = joined(data, spans.get("estimate"));
      const doubles = new DataView(estimates.buffer, estimates.byteOffset, estimates.length);
      if (own.length !== size * rows || estimates.length !== 8 * rows) refuse("it does not hold each value once");
      for (let row4 = 0; row4 < rows; row4 += 1) {
        const value = size === 8 ? view.getBigInt64(8 * row4, true) : decimal(view, 16 * row4);
        if (value < lowest || value > highest3) refuse("a value lies beyond the ends of its type");
        values[done + row4] = value;
        if (!Object.is(doubles.getFloat64(8 * row4, true), estimate(value, total))) {
          refuse("its estimates do not follow from its values");
        }
      }
      checkLabels(data, statistic, groups, spans, done, rows, refuse);
      done += rows;
    }
    return values;
  }
  function readPoints(data, statistic, groups, found, nRows, refuse) {
    const values = new BigInt64Array(nRows);
    const most = BigInt(numberOfPoints(statistic));
    let done = 0;
    for (const { rows, spans } of found) {
      const own = joined(data, spans.get("value"));
      if (own.length !== 8 * rows) refuse("it does not hold each value once");
      const view = new DataView(own.buffer, own.byteOffset, own.length);
      for (let row4 = 0; row4 < rows; row4 += 1) {
        const point = view.getBigInt64(8 * row4, true);
        if (point < 0n || point >= most) refuse("a value is no point of its grid");
        values[done + row4] = point;
      }
      checkLabels(data, statistic, groups, spans, done, rows, refuse);
      done += rows;
    }
    return values;
  }
  function checkLabels(data, statistic, groups, spans, done, rows, refuse) {
    for (const [name, keys, position] of labels(statistic, groups)) {
      if (!hasLabels(joined(data, spans.get(name)), keys, position, done, rows)) {
        refuse(`its column ${shown(name)} is not the plan's`);
      }
    }
  }
  function valuesOfCell(statistic) {
    return isSampled(statistic) ? statistic.draws : statistic.components.length;
  }
  function decimal(view, at) {
    return view.getBigInt64(at, false) << 64n | view.getBigUint64(at + 8, false);
  }
  function estimate(value, total) {
    if (total === null) return Number(value);
    const size = value < 0n ? -value : value;
    if (size <= 9007199254740992n && total <= 9007199254740992n) return Number(value) / Number(total);
    return toNumber(rational(value, total));
  }
  function* labels(statistic, groups) {
    const width2 = valuesOfCell(statistic);
    let inner = groups.reduce((product, group3) => product * group3.keys.length, 1);
    for (const group3 of groups) {
      inner /= group3.keys.length;
      const step = inner * width2;
      const keys = group3.kind === "range" ? group3.keys.map(int64) : group3.keys.map((key) => lengthAnd(String(key)));
      yield [group3.column, keys, (row4) => Math.floor(row4 / step) % group3.keys.length];
    }
    if (isSampled(statistic)) {
      yield ["draw", Array.from({ length: width2 }, (_, draw2) => int64(draw2)), (row4) => row4 % width2];
      return;
    }
    yield ["component", statistic.components.map(lengthAnd), (row4) => row4 % width2];
  }
  function int64(number2) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, BigInt(number2), true);
    return bytes;
  }
  function lengthAnd(text) {
    const written3 = encodeText(text);
    const bytes = new Uint8Array(4 + written3.length);
    new DataView(bytes.buffer).setUint32(0, written3.length, true);
    bytes.set(written3, 4);
    return bytes;
  }
  function hasLabels(bytes, keys, position, start2, rows) {
    let at = 0;
    for (let row4 = start2; row4 < start2 + rows; row4 += 1) {
      const key = keys[position(row4)];
      if (at + key.length > bytes.length) return false;
      for (let i = 0; i < key.length; i += 1) if (bytes[at + i] !== key[i]) return false;
      at += key.length;
    }
    return at === bytes.length;
  }
  function joined(data, spans) {
    if (spans.length === 1) return data.subarray(...spans[0]);
    const bytes = new Uint8Array(spans.reduce((sum, [start2, end]) => sum + end - start2, 0));
    let at = 0;
    for (const [start2, end] of spans) {
      bytes.set(data.subarray(start2, end), at);
      at += end - start2;
    }
    return bytes;
  }
  function columnSizes(statistic, groups) {
    const nCells = groups.reduce((product, group3) => product * group3.keys.length, 1);
    const width2 = valuesOfCell(statistic);
    const texts = (keys) => keys.reduce((sum, key) => sum + 4 + encodeText(String(key)).length, 0);
    const sizes = /* @__PURE__ */ new Map();
    for (const group3 of groups) {
      const cells = group3.kind === "range" ? 8 * nCells : nCells / group3.keys.length * texts(group3.keys);
      sizes.set(group3.column, width2 * cells);
    }
    if (isSampled(statistic)) return sizes.set("draw", 8 * nCells * width2).set("value", 8 * nCells * width2);
    sizes.set("component", nCells * texts(statistic.components));
    sizes.set("value", (statistic.value_type === "int64" ? 8 : 16) * nCells * width2);
    sizes.set("estimate", 8 * nCells * width2);
    return sizes;
  }
  function fileSizes(statistic, groups) {
    const sizes = columnSizes(statistic, groups);
    const values = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    const rowGroups = rowGroupCount(statistic, groups);
    const headers = PAGE_HEADER * (rowGroups * sizes.size + Math.floor(values / SMALLEST_PAGE));
    return [12 + values, 12 + values + headers + largestFooter(sizes, rowGroups)];
  }
  function rowGroupCount(statistic, groups) {
    const nCells = groups.reduce((product, group3) => product * group3.keys.length, 1);
    return Math.ceil(nCells * valuesOfCell(statistic) / ROW_GROUP);
  }
  function largestFooter(sizes, rowGroups) {
    const names = [...sizes.keys()].reduce((sum, name) => sum + encodeText(name).length, 0);
    return 1024 + 64 * sizes.size + names + rowGroups * (64 + 128 * sizes.size + names);
  }
  function layout(data, statistic, groups, refuse) {
    const sizes = columnSizes(statistic, groups);
    const [least, greatest] = fileSizes(statistic, groups);
    if (data.length < least || data.length > greatest) refuse("its size is not the plan's");
    if (!equalBytes(data.subarray(0, 4), MAGIC) || !equalBytes(data.subarray(-4), MAGIC)) {
      refuse("it is no readable Parquet file");
    }
    const end = data.length - 8;
    const footer = end - new DataView(data.buffer, data.byteOffset + end, 4).getUint32(0, true);
    if (footer < Math.max(4, end - largestFooter(sizes, rowGroupCount(statistic, groups)))) {
      refuse("its footer is larger than the plan's");
    }
    const reader = new ThriftReader(data, footer, end);
    const metadata = reader.struct();
    if (!only(metadata, [1, 2, 3, 4], [6, 7]) || reader.position !== end) {
      refuse("its footer says more than the plan's");
    }
    const kinds = columnKinds(statistic, groups);
    const [root2, ...fields] = metadata.get(2);
    const declares = fields.length === kinds.size && root2.get(5) === kinds.size;
    if (!declares || ![...kinds].every(([name, kind], i) => isDeclared(fields[i], name, kind))) {
      refuse("its columns are not the plan's");
    }
    const nRows = valuesOfCell(statistic) * groups.reduce((product, group3) => product * group3.keys.length, 1);
    const declared = metadata.get(4);
    if (metadata.get(3) !== nRows || declared.length !== rowGroupCount(statistic, groups)) {
      refuse("its rows or row groups are not the plan's");
    }
    let position = 4;
    const found = declared.map((group3, index) => {
      const rows = Math.min(ROW_GROUP, nRows - index * ROW_GROUP);
      if (group3.get(3) !== rows) refuse("its rows or row groups are not the plan's");
      if (!only(group3, [1, 2, 3], [5, 6, 7])) refuse("its row groups say more than the plan's");
      const chunks = group3.get(1);
      if (chunks.length !== kinds.size) refuse("its columns are not the plan's");
      const spans = /* @__PURE__ */ new Map();
      [...kinds].forEach(([name, kind], i) => {
        const size = chunkSize(chunks[i], name, kind[0], rows, position);
        if (size === null || size <= 0 || size > footer - position) {
          refuse(`its column ${shown(name)} is compressed, encoded, or out of place`);
        }
        spans.set(name, pages(data, position, position + size, rows, refuse));
        position += size;
      });
      return { rows, spans };
    });
    if (position !== footer) refuse("it holds bytes of no column");
    for (const [name, size] of sizes) {
      const held = found.reduce((sum, { spans }) => sum + spans.get(name).reduce((s, [a, b]) => s + b - a, 0), 0);
      if (held !== size) refuse("it does not hold each value once and nothing else");
    }
    return found;
  }
  function columnKinds(statistic, groups) {
    const kinds = new Map(groups.map((group3) => [group3.column, group3.kind === "range" ? [INT64] : [TEXT]]));
    if (isSampled(statistic)) return kinds.set("draw", [INT64]).set("value", [INT64]);
    kinds.set("component", [TEXT]);
    kinds.set("value", statistic.value_type === "int64" ? [INT64] : [FIXED, 16, 0, 38]);
    kinds.set("estimate", [DOUBLE]);
    return kinds;
  }
  function isDeclared(entry, name, kind) {
    const lengths = [2, 7, 8].filter((number2) => entry.has(number2)).map((number2) => entry.get(number2));
    return entry.get(3) === 0 && !entry.has(5) && decodeText(entry.get(4)) === name && entry.get(1) === kind[0] && lengths.length === kind.length - 1 && lengths.every((value, i) => value === kind[i + 1]);
  }
  function chunkSize(chunk, name, kind, rows, position) {
    const column = chunk.get(3);
    if (!only(chunk, [3], [2]) || !only(column, [1, 2, 3, 4, 5, 6, 7, 9], [13, 16])) return null;
    const path = column.get(3);
    const asExpected = column.get(1) === kind && path.length === 1 && decodeText(path[0]) === name && column.get(4) === 0 && column.get(5) === rows && column.get(9) === position && column.get(6) === column.get(7) && column.get(2).every((encoding) => encoding === PLAIN || encoding === LEVELS);
    return asExpected && Number.isInteger(column.get(7)) ? column.get(7) : null;
  }
  function pages(data, start2, end, rows, refuse) {
    const spans = [];
    let [position, left] = [start2, rows];
    while (position < end && left > 0) {
      const reader = new ThriftReader(data, position, Math.min(end, position + PAGE_HEADER));
      const page = reader.struct();
      const size = page.get(3);
      const values = page.get(5);
      const statistics = values.get(5);
      const plain = only(page, [1, 2, 3, 5], []) && page.get(1) === 0 && page.get(2) === size && values.get(2) === PLAIN;
      if (!plain || !only(values, [1, 2, 3, 4], [5]) || statistics !== void 0 && statistics.size > 0) {
        refuse("a page of it is compressed, encoded, or not of the plan's kind");
      }
      if (size < 1 || values.get(1) < 1) refuse("a page of it is empty");
      spans.push([reader.position, reader.position + size]);
      position = reader.position + size;
      left -= values.get(1);
      if (left > 0 && size < SMALLEST_PAGE) refuse("its pages are too small");
    }
    if (position !== end || left !== 0) refuse("its pages are not the plan's");
    return spans;
  }
  function only(fields, required, optional) {
    if (!required.every((number2) => fields.has(number2))) return false;
    return [...fields.keys()].every((number2) => required.includes(number2) || optional.includes(number2));
  }

  // src/blocks.js
  var ONE = rational(1n);
  var ZERO = rational(0n);
  var KEYS = {
    bernoulli: ["nulls"],
    categorical: ["categories", "other"],
    histogram: ["nulls", "lower", "upper", "bins", "atoms"],
    normal: ["nulls", "lower", "upper", "lattice_bits"],
    lognormal: ["nulls", "lower", "upper", "lattice_bits"],
    binomial: ["nulls", "trials"],
    poisson: ["nulls", "upper"],
    geometric: ["nulls", "upper"],
    negative_binomial: ["nulls", "successes", "upper"],
    exponential: ["nulls", "upper", "lattice_bits"],
    gamma: ["nulls", "shape", "upper", "lattice_bits"],
    weibull: ["nulls", "shape", "upper", "lattice_bits"],
    pareto: ["nulls", "minimum", "upper", "lattice_bits"],
    laplace: ["nulls", "location", "half_range", "lattice_bits"],
    normal_known_mean: ["nulls", "mean", "half_range", "lattice_bits"],
    normal_known_variance: ["nulls", "variance", "lower", "upper", "lattice_bits"]
  };
  var OF_UNITS = ["bernoulli", "categorical", "histogram", "poisson", "normal"];
  var NUMBERS = ["location", "mean"];
  var WITHIN_UNIT = ["bernoulli", "normal", "lognormal"];
  var OF_MOMENTS = ["normal", "lognormal"];
  var COUNT_CLIPPED = [
    "normal",
    "lognormal",
    "binomial",
    "poisson",
    "geometric",
    "negative_binomial",
    "exponential",
    "gamma",
    "weibull",
    "pareto",
    "normal_known_variance"
  ];
  function checkEntry(entry, { unit }, place) {
    const { family, nulls, other } = entry;
    const optional = [
      "where",
      "groups",
      ...OF_MOMENTS.includes(family) ? ["moment_weight"] : ["sample"],
      ...WITHIN_UNIT.includes(family) ? ["within_unit"] : [],
      ...COUNT_CLIPPED.includes(family) ? ["count_clipped"] : []
    ];
    onlyKeys(entry, ["column", "family", "rows_of", "share", ...KEYS[family]], optional, place);
    if (typeof entry.column !== "string") throw refused2(`${place}.column`, "it is no name");
    if (entry.where !== void 0 && typeof entry.where !== "string" && !isMapping2(entry.where)) {
      throw refused2(`${place}.where`, "it is no condition");
    }
    const isUnits = entry.rows_of === "units" && unit !== null && OF_UNITS.includes(family);
    if (entry.rows_of !== "rows" && !isUnits) throw refused2(`${place}.rows_of`, "this statistic has no such rows");
    if (entry.within_unit !== void 0 && (entry.within_unit !== true || unit === null || isUnits)) {
      throw refused2(`${place}.within_unit`, "this statistic has none");
    }
    if (entry.count_clipped !== void 0 && (isUnits || entry.within_unit !== void 0 || entry.sample !== void 0)) {
      throw refused2(`${place}.count_clipped`, "this statistic has none");
    }
    if (entry.sample !== void 0 && (family === "categorical" || entry.within_unit !== void 0)) {
      throw refused2(`${place}.sample`, "this statistic has none");
    }
    if (KEYS[family].includes("nulls") && nulls !== "drop") {
      onlyKeys(nulls, ["value"], [], `${place}.nulls`);
      number(nulls.value, `${place}.nulls`);
    }
    for (const key of NUMBERS) if (KEYS[family].includes(key)) number(entry[key], `${place}.${key}`);
    if (family === "categorical" && typeof other !== "boolean") throw refused2(`${place}.other`, "it is not true or false");
  }
  function besideSums(block2, stated, place) {
    onlyKeys(stated, ["weight"], [], place);
    const share3 = number(stated.weight, place);
    if (compare(share3, rational(1n, 1000n)) < 0 || compare(share3, ONE) > 0) throw refused2(place, "its weight is out of range");
    const exact = multiply(rational(block2.minimalL1 ?? block2.recordL1), share3);
    const weight = (exact.n + exact.d - 1n) / exact.d;
    const sums = block2.components.length;
    const count2 = (name, side) => ({
      name,
      coefficients: [...block2.components.map(() => ZERO), ...[0, 1].map((i) => i === side ? rational(1n, weight) : ZERO)]
    });
    const withCounts = (one) => ({ ...one, coefficients: [...one.coefficients, ZERO, ZERO] });
    return {
      ...block2,
      components: [...block2.components, "a count(x<lower)", "a count(x>upper)"],
      largest: block2.largest > weight ? block2.largest : weight,
      ...block2.minimalL1 === void 0 ? { recordL1: block2.recordL1 + weight, recordL2: block2.recordL1 ** 2n + weight ** 2n } : {
        minimalL1: largest(block2.minimalL1 + weight, block2.betweenEnds + 2n * weight),
        minimalL2: largest((block2.minimalL2 ?? block2.minimalL1 ** 2n) + weight ** 2n, block2.betweenEnds ** 2n + 2n * weight ** 2n)
      },
      quantities: [...block2.quantities.map(withCounts), count2("n_below", 0), count2("n_above", 1)],
      counted: {
        weight: String(weight),
        sum_components: block2.components.slice(0, sums),
        sum_partition_total: block2.minimalL1 === void 0 ? String(block2.recordL1) : null
      }
    };
  }
  function largest(one, other) {
    return one > other ? one : other;
  }
  function squaredSensitivity(block2, { replaces, rows, maxInCell }) {
    if (block2.minimalL1 !== void 0) return block2.minimalL2 ?? block2.minimalL1 ** 2n;
    const [kept2, inCell] = [BigInt(rows), BigInt(Math.min(maxInCell, rows))];
    const squares2 = kept2 / inCell * inCell ** 2n + (kept2 % inCell) ** 2n;
    return squares2 * (block2.recordL2 ?? block2.recordL1 ** 2n) * (replaces ? 2n : 1n);
  }
  function minimalMoments(steps2, first) {
    const inner = steps2 ** 2n - 2n * first ** 2n;
    const root2 = inner > 0n ? rootRoundedDown(inner) : 0n;
    const near = (3n * steps2 - root2) / 2n;
    return [near - 1n, near, near + 1n, 2n * steps2].map((change) => change ** 2n * (first ** 2n + (2n * steps2 - change) ** 2n)).reduce(largest);
  }
  var BLOCKS = {
    bernoulli(entry, mayBeMinimal) {
      const parameters = parametersOf({});
      if (mayBeMinimal && entry.nulls !== "drop") {
        return {
          components: ["true"],
          largest: 1n,
          minimalL1: 1n,
          parameters,
          quantities: [
            { name: "n", coefficients: [ZERO], ofPublicN: ONE },
            { name: "total", coefficients: [ONE] }
          ]
        };
      }
      return {
        components: ["false", "true"],
        largest: 1n,
        recordL1: 1n,
        parameters,
        quantities: [
          { name: "n", coefficients: [ONE, ONE] },
          { name: "total", coefficients: [ZERO, ONE] }
        ]
      };
    },
    categorical(entry, mayBeMinimal) {
      const names = [...keysOf(entry.categories, "categories").map(String), ...entry.other ? ["other"] : []];
      return {
        components: names,
        largest: 1n,
        recordL1: 1n,
        minimalL1: mayBeMinimal && entry.other ? 2n : void 0,
        minimalL2: 2n,
        parameters: parametersOf({ categories: names }),
        quantities: names.map((category, k) => ({
          name: "count",
          category,
          coefficients: names.map((_, i) => i === k ? ONE : ZERO)
        }))
      };
    },
    histogram(entry) {
      const names = binLabels(entry);
      const one = (k) => names.map((_, i) => i === k || k === null ? ONE : ZERO);
      return {
        components: names,
        largest: 1n,
        recordL1: 1n,
        parameters: {
          ...parametersOf({ categories: names, lower: number(entry.lower, "lower"), upper: number(entry.upper, "upper") }),
          bins: { edges: entry.bins, atoms: entry.atoms }
        },
        quantities: [
          { name: "n", coefficients: one(null) },
          ...names.map((category, k) => ({ name: "count", category, coefficients: one(k) }))
        ]
      };
    },
    normal: (entry, mayBeMinimal) => moments(entry, mayBeMinimal, number(entry.lower, "lower"), number(entry.upper, "upper")),
    lognormal(entry, mayBeMinimal, stated, place) {
      const [lower, upper] = ["lower", "upper"].map((end) => nearly(stated, end, Math.log(toNumber(number(entry[end], end))), 2 ** -32, place));
      return moments(entry, mayBeMinimal, lower, upper);
    },
    binomial: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.trials }),
    poisson: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.upper }),
    geometric: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.upper }),
    negative_binomial: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { counts: entry.upper, constants: { successes: entry.successes } }),
    exponential: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { upper: number(entry.upper, "upper") }),
    gamma: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { upper: number(entry.upper, "upper"), constants: { shape: entry.shape } }),
    weibull(entry, mayBeMinimal, stated, place) {
      const power = toNumber(number(entry.upper, "upper")) ** toNumber(number(entry.shape, "shape"));
      return oneSum(entry, mayBeMinimal, { upper: nearly(stated, "upper", power, 1e-13, place) });
    },
    pareto(entry, mayBeMinimal, stated, place) {
      const ratio2 = divide(number(entry.upper, "upper"), number(entry.minimum, "minimum"));
      return oneSum(entry, mayBeMinimal, { upper: nearly(stated, "upper", Math.log(toNumber(ratio2)), 2 ** -32, place) });
    },
    laplace: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, { upper: number(entry.half_range, "half_range") }),
    normal_known_mean(entry, mayBeMinimal) {
      const half = number(entry.half_range, "half_range");
      return oneSum(entry, mayBeMinimal, { upper: multiply(half, half) });
    },
    normal_known_variance: (entry, mayBeMinimal) => oneSum(entry, mayBeMinimal, {
      lower: number(entry.lower, "lower"),
      upper: number(entry.upper, "upper"),
      constants: { variance: entry.variance }
    })
  };
  function moments(entry, mayBeMinimal, lower, upper) {
    const bits2 = bitsOf(entry);
    const steps2 = 1n << BigInt(bits2);
    const half = rational(1n, 2n);
    const centre = multiply(add(lower, upper), half);
    const step = divide(multiply(subtract(upper, lower), half), rational(steps2));
    const parameters = parametersOf({ lower, upper, bits: bits2 });
    const inUnits = (n, total, squares2, ofN) => {
      const map = (a, b, c) => n.map((_, i) => add(add(multiply(a, n[i]), multiply(b, total[i])), multiply(c, squares2[i])));
      return [
        { name: "n", coefficients: n, ofPublicN: ofN },
        { name: "total", coefficients: map(centre, step, ZERO), ofPublicN: multiply(centre, ofN) },
        {
          name: "total_of_squares",
          coefficients: map(multiply(centre, centre), multiply(rational(2n), multiply(centre, step)), multiply(step, step)),
          ofPublicN: multiply(multiply(centre, centre), ofN)
        }
      ];
    };
    if (mayBeMinimal && entry.nulls !== "drop") {
      const weight = entry.moment_weight === void 0 ? rational(2n) : number(entry.moment_weight, "moment_weight");
      const factor = divide(rational(steps2), weight);
      if (weight.n <= 0n || factor.d !== 1n) throw refused2("moment_weight", "it does not fit the lattice");
      const inner = add(divide(ONE, weight), rational(2n));
      const bound2 = multiply(rational(steps2 * steps2, 4n), multiply(inner, inner));
      const shift = bitLength(factor.n) - bitLength(steps2);
      const exponent = shift ? `(m${shift > 0 ? "+" : ""}${shift})` : "m";
      return {
        components: [`2^${exponent} sum(X)`, "sum(X^2)"],
        largest: steps2 * steps2 > steps2 * factor.n ? steps2 * steps2 : steps2 * factor.n,
        minimalL1: bound2.n / bound2.d,
        minimalL2: minimalMoments(steps2, factor.n),
        betweenEnds: 2n * steps2 * factor.n,
        weight,
        parameters,
        quantities: inUnits([ZERO, ZERO], [divide(weight, rational(steps2)), ZERO], [ZERO, ONE], ONE)
      };
    }
    const record = rational(1n, 4n * steps2 * steps2);
    const unit = rational(1n, 4n * steps2);
    const quarter = rational(1n, 4n);
    const minus2 = (one) => subtract(ZERO, one);
    return {
      components: ["sum((M-X)^2)", "sum(2(M-X)(M+X))", "sum((M+X)^2)"],
      largest: 4n * steps2 * steps2,
      recordL1: 4n * steps2 * steps2,
      parameters,
      quantities: inUnits(
        [record, record, record],
        [minus2(unit), ZERO, unit],
        [quarter, minus2(quarter), quarter],
        ZERO
      )
    };
  }
  function oneSum(entry, mayBeMinimal, { counts, lower, upper, constants }) {
    const isCount2 = counts !== void 0;
    const bits2 = isCount2 ? null : bitsOf(entry);
    const steps2 = isCount2 ? integer(counts, "upper") : 1n << BigInt(bits2);
    if (steps2 < 1n) throw refused2("upper", "it is no count");
    const [low, high] = [lower ?? ZERO, upper ?? rational(steps2)];
    const lowest = lower === void 0 ? 0n : -steps2;
    const width2 = steps2 - lowest;
    const [value, bound2] = isCount2 ? ["x", "C"] : ["X", "M"];
    const known = constants && Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, format(number(text, name))]));
    const parameters = parametersOf({ lower: low, upper: high, bits: bits2, constants: known });
    if (mayBeMinimal && entry.nulls !== "drop") {
      const step = divide(subtract(high, low), rational(width2));
      return {
        components: [`sum(${value})`],
        largest: steps2,
        minimalL1: width2,
        betweenEnds: width2,
        parameters,
        quantities: [
          { name: "n", coefficients: [ZERO], ofPublicN: ONE },
          { name: "total", coefficients: [step], ofPublicN: subtract(low, multiply(step, rational(lowest))) }
        ]
      };
    }
    return {
      components: [lowest ? `sum(${bound2} + ${value})` : `sum(${value})`, `sum(${bound2} - ${value})`],
      largest: width2,
      recordL1: width2,
      parameters,
      quantities: [
        { name: "n", coefficients: [rational(1n, width2), rational(1n, width2)] },
        { name: "total", coefficients: [divide(high, rational(width2)), divide(low, rational(width2))] }
      ]
    };
  }
  function parametersOf({ categories = [], lower = null, upper = null, bits: bits2 = null, constants }) {
    return {
      categories,
      lower: lower && format(lower),
      upper: upper && format(upper),
      lattice_bits: bits2,
      ...constants ? { constants } : {}
    };
  }
  function bitsOf(entry) {
    const bits2 = Number(integer(entry.lattice_bits, "lattice_bits"));
    if (!(bits2 >= 2 && bits2 <= 24)) throw refused2("lattice_bits", "it is out of range");
    return bits2;
  }
  function nearly(stated, end, value, off, place) {
    const bound2 = number(stated.parameters?.[end], `${place}.parameters.${end}`);
    if (!(Math.abs(toNumber(bound2) - value) <= off * Math.max(Math.abs(value), 1))) {
      throw refused2(`${place}.parameters.${end}`, "it contradicts the plan that was charged");
    }
    return bound2;
  }
  function bitLength(size) {
    return size.toString(2).length;
  }

  // src/special.js
  var HALF_LOG_TWO_PI = 0.9189385332046728;
  var LANCZOS = [
    0.9999999999998099,
    676.5203681218851,
    -1259.1392167224028,
    771.3234287776531,
    -176.6150291621406,
    12.507343278686905,
    -0.13857109526572012,
    9984369578019572e-21,
    15056327351493116e-23
  ];
  function logGamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
    if (x > 15) return (x - 0.5) * Math.log(x) - x + HALF_LOG_TWO_PI + stirlingSeries(x);
    let sum = LANCZOS[0];
    for (let i = 1; i < 9; i += 1) sum += LANCZOS[i] / (x - 1 + i);
    const t = x + 6.5;
    return HALF_LOG_TWO_PI + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }
  function stirlingSeries(x) {
    const y = 1 / (x * x);
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * 691 / 360360))))) / x;
  }
  function stirlingError(x) {
    if (x > 15) return stirlingSeries(x);
    return logGamma(x + 1) - (x + 0.5) * Math.log(x) + x - HALF_LOG_TWO_PI;
  }
  function deviance(x, m) {
    const difference = x - m;
    if (Math.abs(difference) < 0.1 * (x + m)) {
      const v = difference / (x + m);
      const square = v * v;
      let power = 2 * x * v * square;
      let sum = difference * v;
      for (let odd = 3; odd < 2e3; odd += 2) {
        const next = sum + power / odd;
        if (next === sum) return next;
        sum = next;
        power *= square;
      }
    }
    return x * Math.log(x / m) + m - x;
  }
  function logPoisson(x, m) {
    if (x === 0) return -m;
    return -stirlingError(x) - deviance(x, m) - 0.5 * Math.log(x) - HALF_LOG_TWO_PI;
  }
  function logBinomial(x, n, p, q) {
    const rest = n - x;
    if (x <= 0) return x < 0 ? -Infinity : p < 0.1 ? n * Math.log1p(-p) : n * Math.log(q);
    if (rest <= 0) return rest < 0 ? -Infinity : q < 0.1 ? n * Math.log1p(-q) : n * Math.log(p);
    return stirlingError(n) - stirlingError(x) - stirlingError(rest) - deviance(x, n * p) - deviance(rest, n * q) + 0.5 * Math.log(n / (x * rest)) - HALF_LOG_TWO_PI;
  }
  function logBeta(a, b) {
    const small = Math.min(a, b);
    const large = Math.max(a, b);
    if (large < 15) return logGamma(a) + logGamma(b) - logGamma(a + b);
    const ratio2 = stirlingSeries(large) - stirlingSeries(large + small) - (large - 0.5) * Math.log1p(small / large) - small * Math.log(large + small) + small;
    return logGamma(small) + ratio2;
  }
  function harmonic(n) {
    if (n < 64) {
      let sum = 0;
      for (let i = 1; i <= n; i += 1) sum += 1 / i;
      return sum;
    }
    const y = 1 / (n * n);
    return Math.log(n) + 0.5772156649015329 + 1 / (2 * n) - y * (1 / 12 - y * (1 / 120 - y / 252));
  }

  // src/totals.js
  var LOG_TWO_PI = Math.log(2 * Math.PI);
  var BinomialTotal = class {
    constructor(trials2) {
      this.support = "integers";
      this.trials = trials2;
    }
    given(logit) {
      this.logit = logit;
      this.p = 1 / (1 + Math.exp(-logit));
      this.q = 1 / (1 + Math.exp(logit));
      this.odds = Math.exp(logit);
      this.perRow = this.trials * this.p;
      this.variancePerRow = this.trials * this.p * this.q;
    }
    at(n) {
      this.most = this.trials * n;
    }
    log(x) {
      return logBinomial(x, this.most, this.p, this.q);
    }
    ratio(x) {
      return (this.most - x) / (x + 1) * this.odds;
    }
    mode(s) {
      return this.most / (1 + Math.exp(-(this.logit + s)));
    }
    slope(x, s) {
      return Math.log((this.most - x + 0.5) / (x + 0.5)) + this.logit + s;
    }
    curvature(x) {
      return 1 / (x + 0.5) + 1 / (this.most - x + 0.5);
    }
  };
  var PoissonTotal = class {
    constructor() {
      this.support = "integers";
      this.most = Infinity;
    }
    given(logRate) {
      this.rate = Math.exp(logRate);
      this.perRow = this.rate;
      this.variancePerRow = this.rate;
    }
    at(n) {
      this.mean = n * this.rate;
    }
    log(x) {
      return logPoisson(x, this.mean);
    }
    ratio(x) {
      return this.mean / (x + 1);
    }
    mode(s) {
      return this.mean * Math.exp(s);
    }
    slope(x, s) {
      return Math.log(this.mean / (x + 0.5)) + s;
    }
    curvature(x) {
      return 1 / (x + 0.5);
    }
  };
  var NegativeBinomialTotal = class {
    constructor(successes2) {
      this.support = "integers";
      this.most = Infinity;
      this.successes = successes2;
    }
    given(logit) {
      this.p = 1 / (1 + Math.exp(-logit));
      this.q = 1 / (1 + Math.exp(logit));
      this.logQ = logit > 0 ? -logit - Math.log1p(Math.exp(-logit)) : -Math.log1p(Math.exp(logit));
      this.perRow = this.successes * this.q / this.p;
      this.variancePerRow = this.perRow / this.p;
    }
    at(n) {
      this.r = this.successes * n;
    }
    log(x) {
      if (x === 0) return this.q < 0.1 ? this.r * Math.log1p(-this.q) : this.r * Math.log(this.p);
      return logBinomial(x, this.r + x, this.q, this.p) - Math.log1p(x / this.r);
    }
    ratio(x) {
      return (x + this.r) / (x + 1) * this.q;
    }
    mode(s) {
      const q = this.q * Math.exp(s);
      return q >= 1 ? Infinity : Math.max(this.r - 1, 0) * q / (1 - q);
    }
    slope(x, s) {
      return Math.log((x + this.r) / (x + 1)) + this.logQ + s;
    }
    curvature(x) {
      return Math.max(1 / (x + 1) - 1 / (x + this.r), 0);
    }
  };
  var GammaTotal = class {
    constructor(shape, step) {
      this.support = "positive";
      this.shape = shape;
      this.logStep = Math.log(step);
    }
    given(logRate) {
      this.logRate = logRate + this.logStep;
      this.rate = Math.exp(this.logRate);
      this.perRow = this.shape / this.rate;
      this.variancePerRow = this.perRow / this.rate;
    }
    at(n) {
      this.k = this.shape * n;
      this.logK = Math.log(this.k);
      this.logGammaOfNext = this.k < 1e6 ? logGamma(this.k + 1) : 0;
    }
    log(x) {
      const reach2 = x + this.logRate;
      if (reach2 < -650) return this.k * reach2 - this.logGammaOfNext + this.logK;
      return logPoisson(this.k, Math.exp(reach2)) + this.logK;
    }
    mode(s) {
      const rate2 = this.rate - s;
      return rate2 > 0 ? Math.log(this.k / rate2) : Infinity;
    }
    slope(x, s) {
      return this.k - (this.rate - s) * Math.exp(x);
    }
    curvature(x, s) {
      return Math.max((this.rate - s) * Math.exp(x), 0);
    }
  };
  var NormalTotal = class {
    constructor(variance, lower, step) {
      this.support = "real";
      this.lower = lower;
      this.step = step;
      this.variancePerRow = variance / step / step;
    }
    given(mean) {
      this.perRow = (mean - this.lower) / this.step;
    }
    at(n) {
      this.mean = n * this.perRow;
      this.variance = n * this.variancePerRow;
      this.constant = -0.5 * (Math.log(this.variance) + LOG_TWO_PI);
    }
    log(x) {
      const difference = x - this.mean;
      return this.constant - 0.5 * difference * difference / this.variance;
    }
    mode(s) {
      return this.mean + this.variance * s;
    }
    slope(x, s) {
      return (this.mean - x) / this.variance + s;
    }
    curvature() {
      return 1 / this.variance;
    }
  };

  // src/rules.js
  function polynomials(m, n, y) {
    const values = new Float64Array(m + 1);
    values[0] = 1;
    let before2 = 0;
    for (let k = 0; k < m; k += 1) {
      const next = root(k + 1, n);
      values[k + 1] = (y * values[k] - before2 * (k ? values[k - 1] : 0)) / next;
      before2 = next;
    }
    return values;
  }
  function root(k, n) {
    const finite = n === Infinity ? 1 : 1 - k * k / (n * n);
    return Math.sqrt(k * k * finite / (4 * k * k - 1));
  }
  var gaussRules = /* @__PURE__ */ new Map();
  function gauss(m) {
    if (!gaussRules.has(m)) {
      const nodes = new Float64Array(m);
      for (let i = 0; i < m; i += 1) {
        let y = -Math.cos(Math.PI * (i + 0.75) / (m + 0.5));
        for (let step = 0; step < 50; step += 1) {
          let [p, q] = [1, y];
          for (let k = 2; k <= m; k += 1) [p, q] = [q, ((2 * k - 1) * y * q - (k - 1) * p) / k];
          const change = q * (y * y - 1) / (m * (y * q - p));
          y -= change;
          if (Math.abs(change) < 1e-16) break;
        }
        nodes[i] = y;
      }
      const table2 = Array.from(nodes, (y) => polynomials(m, Infinity, y).subarray(0, m));
      const weights = Float64Array.from(table2, (row4) => 1 / row4.reduce((sum, value) => sum + value * value, 0));
      gaussRules.set(m, { nodes, weights, table: table2 });
    }
    return gaussRules.get(m);
  }
  var gramRules = /* @__PURE__ */ new Map();
  function gram(m, n) {
    if (n > 1e6) return gauss(m);
    const key = m * 2 ** 21 + n;
    if (gramRules.has(key)) return gramRules.get(key);
    const nodes = Float64Array.from(gauss(m).nodes);
    const weights = new Float64Array(m);
    for (let i = 0; i < m; i += 1) {
      let y = nodes[i];
      for (let step = 0; step < 60; step += 1) {
        const { value, slope: slope2 } = lastPolynomial(m, n, y);
        let others2 = 0;
        for (let j = 0; j < i; j += 1) others2 += 1 / (y - nodes[j]);
        const change = value / (slope2 - value * others2);
        y -= change;
        if (Math.abs(change) < 1e-15) break;
      }
      nodes[i] = y;
    }
    nodes.sort();
    for (let i = 0; i < m; i += 1) {
      const row4 = polynomials(m, n, nodes[i]);
      let squares2 = 0;
      for (let k = 0; k < m; k += 1) squares2 += row4[k] * row4[k];
      weights[i] = 1 / squares2;
    }
    if (gramRules.size > 2e4) gramRules.clear();
    gramRules.set(key, { nodes, weights });
    return gramRules.get(key);
  }
  function lastPolynomial(m, n, y) {
    let [before2, value, beforeSlope, slope2, last] = [0, 1, 0, 0, 0];
    for (let k = 0; k < m; k += 1) {
      const next = root(k + 1, n);
      const following2 = (y * value - last * before2) / next;
      const followingSlope = (value + y * slope2 - last * beforeSlope) / next;
      [before2, value, beforeSlope, slope2, last] = [value, following2, slope2, followingSlope, next];
    }
    return { value, slope: slope2 };
  }
  var sumRules = /* @__PURE__ */ new Map();
  function sumRule(m, n) {
    const key = m * 2 ** 40 + n;
    if (n < 2 ** 40 && sumRules.has(key)) return sumRules.get(key);
    const { nodes: ideal } = gauss(m);
    const nodes = Float64Array.from(ideal, (y) => Math.round((n * (y + 1) - 1) / 2));
    for (let i = 1; i < m; i += 1) if (nodes[i] <= nodes[i - 1]) nodes[i] = nodes[i - 1] + 1;
    for (let i = m - 1, last = n - 1; i >= 0; i -= 1, last -= 1) if (nodes[i] > last) nodes[i] = last;
    const matrix = Array.from(nodes, (node) => polynomials(m, n, (2 * node + 1) / n - 1).subarray(0, m));
    const solve = (unit) => transposedSolve(matrix, unit);
    const rule = { nodes, weights: solve(0), tails: [solve(m - 1), solve(m - 2)] };
    if (n < 2 ** 40) {
      if (sumRules.size > 4096) sumRules.clear();
      sumRules.set(key, rule);
    }
    return rule;
  }
  function transposedSolve(matrix, unit) {
    const m = matrix.length;
    const a = Array.from({ length: m }, (_, i) => Float64Array.from({ length: m + 1 }, (__, j) => j < m ? matrix[j][i] : Number(i === unit)));
    for (let column = 0; column < m; column += 1) {
      let pivot = column;
      for (let row4 = column + 1; row4 < m; row4 += 1) {
        if (Math.abs(a[row4][column]) > Math.abs(a[pivot][column])) pivot = row4;
      }
      [a[column], a[pivot]] = [a[pivot], a[column]];
      for (let row4 = column + 1; row4 < m; row4 += 1) {
        const factor = a[row4][column] / a[column][column];
        for (let j = column; j <= m; j += 1) a[row4][j] -= factor * a[column][j];
      }
    }
    const x = new Float64Array(m);
    for (let row4 = m - 1; row4 >= 0; row4 -= 1) {
      let sum = a[row4][m];
      for (let j = row4 + 1; j < m; j += 1) sum -= a[row4][j] * x[j];
      x[row4] = sum / a[row4][row4];
    }
    return x;
  }
  function legendre(values) {
    const { weights, table: table2 } = gauss(values.length);
    const found = new Float64Array(values.length);
    for (let i = 0; i < values.length; i += 1) {
      const weighted = values[i] * weights[i];
      for (let k = 0; k < values.length; k += 1) found[k] += weighted * table2[i][k];
    }
    return found;
  }
  function expansionAt(coefficients, y) {
    const values = polynomials(coefficients.length, Infinity, y);
    let sum = 0;
    for (let k = 0; k < coefficients.length; k += 1) sum += coefficients[k] * values[k];
    return sum;
  }
  function expansionIntegral(coefficients, y) {
    const m = coefficients.length;
    const values = polynomials(m + 1, Infinity, y);
    const plain = (k) => values[k] / Math.sqrt(2 * k + 1);
    let sum = coefficients[0] * (y + 1) / 2;
    for (let k = 1; k < m; k += 1) {
      sum += coefficients[k] * (plain(k + 1) - plain(k - 1)) / (2 * Math.sqrt(2 * k + 1));
    }
    return sum;
  }

  // src/tabulated.js
  var MOST_KEPT = 8;
  var SLICE = 12;
  var NODES = 24;
  var FIRST = 6;
  var TOLERANCE = 3e-12;
  var MOST_HALVINGS = 8;
  var MOST_KNOWN = 5e4;
  var ANGLES = Array.from({ length: NODES }, (_, i) => Math.PI * (i + 0.5) / NODES);
  var POINTS2 = ANGLES.map(Math.cos);
  var WEIGHTS = ANGLES.map((angle, i) => (i % 2 ? -1 : 1) * Math.sin(angle));
  var SliceEnded = class extends Error {
  };
  var slice = { end: Infinity, steps: 0 };
  async function inSlices(work, pause) {
    for (; ; ) {
      slice.end = performance.now() + SLICE;
      slice.steps = 0;
      try {
        return work();
      } catch (error) {
        if (!(error instanceof SliceEnded)) throw error;
      } finally {
        slice.end = Infinity;
      }
      await pause();
    }
  }
  function mayPause() {
    if (slice.steps > 0 && performance.now() > slice.end) throw new SliceEnded();
  }
  function stepDone() {
    slice.steps += 1;
  }
  var Resumed = class {
    /** @param {Generator<void, *>} steps Yields after every few milliseconds of work, and returns what it found. */
    constructor(steps2) {
      this.steps = steps2;
    }
    get value() {
      while (this.steps !== null) {
        mayPause();
        const { done, value } = this.steps.next();
        stepDone();
        if (done) [this.steps, this.found] = [null, value];
      }
      return this.found;
    }
  };
  var KeptWork = class {
    constructor(most = MOST_KEPT) {
      this.most = most;
      this.kept = /* @__PURE__ */ new Map();
      this.asked = /* @__PURE__ */ new Set();
    }
    /** What was kept under a key, or else is made now. */
    of(key, make) {
      const found = this.kept.get(key) ?? make();
      this.kept.delete(key);
      this.kept.set(key, found);
      if (this.kept.size > this.most) this.kept.delete(this.kept.keys().next().value);
      this.asked.add(found);
      return found;
    }
    /** Say that a posterior is done: likelihoods that are asked again are worth interpolating. */
    finish() {
      for (const work of this.asked) work.isAskedAgain = true;
      this.asked.clear();
    }
  };
  var TabulatedLikelihood = class {
    /**
     * @param {{at: function(number): number, ofNone: number}} likelihood
     * @param {number} width About how wide its mode is.
     */
    constructor(likelihood, width2) {
      this.likelihood = likelihood;
      this.width = 2 ** Math.ceil(Math.log2(16 * width2));
      this.panels = /* @__PURE__ */ new Map();
      this.known = /* @__PURE__ */ new Map();
      this.isAskedAgain = false;
    }
    get ofNone() {
      return this.likelihood.ofNone;
    }
    /** The log likelihood at a position on the parameter's line. */
    at(position) {
      if (!this.isAskedAgain) return this.direct(position);
      const index = Math.floor(position / this.width);
      let panel = this.panels.get(index);
      if (panel === void 0) {
        panel = { start: index * this.width, length: this.width, depth: 0, asked: /* @__PURE__ */ new Set(), values: null, halves: null };
        this.panels.set(index, panel);
      }
      while (panel.halves !== null) panel = panel.halves[position < panel.halves[1].start ? 0 : 1];
      if (panel.values !== null) return interpolated(panel, position);
      panel.asked.add(position);
      if (panel.asked.size <= FIRST || panel.depth > MOST_HALVINGS || !Number.isFinite(position))
        return this.direct(position);
      this.fill(panel);
      return this.at(position);
    }
    fill(panel) {
      const { start: start2, length, depth } = panel;
      const values = POINTS2.map((point) => this.direct(start2 + length * (point + 1) / 2));
      if (values.every(Number.isFinite) && lastCoefficients(values) <= TOLERANCE) {
        panel.values = values;
        return;
      }
      const half = (from) => ({
        start: from,
        length: length / 2,
        depth: depth + 1,
        asked: /* @__PURE__ */ new Set(),
        values: null,
        halves: null
      });
      panel.halves = [half(start2), half(start2 + length / 2)];
    }
    direct(position) {
      const known = this.known.get(position);
      if (known !== void 0) return known;
      mayPause();
      const value = this.likelihood.at(position);
      if (this.known.size < MOST_KNOWN) {
        this.known.set(position, value);
        stepDone();
      }
      return value;
    }
  };
  function interpolated({ start: start2, length, values }, position) {
    const at = 2 * (position - start2) / length - 1;
    let [above, below] = [0, 0];
    for (let i = 0; i < NODES; i += 1) {
      const away = at - POINTS2[i];
      if (away === 0) return values[i];
      above += WEIGHTS[i] / away * values[i];
      below += WEIGHTS[i] / away;
    }
    return above / below;
  }
  function lastCoefficients(values) {
    let largest3 = 0;
    for (const order of [NODES - 1, NODES - 2, NODES - 3]) {
      let sum = 0;
      for (let i = 0; i < NODES; i += 1) sum += values[i] * Math.cos(order * ANGLES[i]);
      largest3 = Math.max(largest3, Math.abs(2 * sum / NODES));
    }
    return largest3;
  }

  // src/likelihood.js
  var LEFT_OUT = 24;
  var NODES2 = 12;
  var FURTHER_NODES = 10;
  var [FIRST_FALL, FALL] = [10, 15];
  var TOLERANCE2 = 1e-9;
  var MOST_STEPS = 1600;
  var Likelihood = class {
    /**
     * @param {object} total A distribution of totals, as in totals.js.
     * @param {{values: number[], scale: number, reach: number}} noisy The released sum A, and unless N is
     *   public R N - A, in steps; the noise's scale; R.
     * @param {object} nPrior `low`, `high`, `log(n)`.
     */
    constructor(total, noisy, nPrior) {
      this.total = total;
      [this.first, this.second] = noisy.values;
      this.rate = 1 / noisy.scale;
      this.reach = noisy.reach;
      this.nPrior = nPrior;
      this.hint = null;
      this.cache = /* @__PURE__ */ new Map();
      this.begun = { position: null, terms: null };
    }
    /** Log likelihood at a position on the parameter's line, up to a constant. */
    at(position) {
      const known = this.cache.get(position);
      if (known !== void 0) return known;
      this.total.given(position);
      if (this.begun.position !== position) this.begun = { position, terms: /* @__PURE__ */ new Map() };
      const value = this.sumOverN(this.begun.terms);
      if (this.cache.size < 2e4) this.cache.set(position, value);
      return value;
    }
    /** Log of the term of N = 0, where the total is 0 with probability one. */
    get ofNone() {
      if (this.nPrior.low > 0) return -Infinity;
      const second = this.second === void 0 ? 0 : Math.abs(this.second);
      return this.nPrior.log(0) - this.rate * (Math.abs(this.first) + second);
    }
    sumOverN(known) {
      const { low, high } = this.nPrior;
      const first = Math.max(low, 1);
      const none = this.ofNone;
      if (high < first) return none;
      const term = (n) => {
        let value = known.get(n);
        if (value === void 0) {
          mayPause();
          value = this.nPrior.log(n) + this.sumOverTotals(n);
          known.set(n, value);
          stepDone();
        }
        return value;
      };
      const some = first === high ? term(first) : this.sumOfTerms(term, first, high);
      return logAdd(some, none);
    }
    sumOfTerms(term, low, high) {
      const inside2 = (n) => Math.min(Math.max(Math.round(n), low), high);
      const { perRow, variancePerRow } = this.total;
      const second = this.second ?? 0;
      const crossing = (this.first + second) / this.reach;
      const near = [crossing, this.first / perRow, second / (this.reach - perRow)].filter(Number.isFinite);
      let centre = this.hint ?? inside2(crossing);
      for (const n of [...near.map(inside2), low]) if (term(n) > term(centre)) centre = n;
      centre = mode(term, centre, low, high, inside2(1 / (this.rate * this.reach)));
      this.hint = centre;
      const top = term(centre);
      const step = Math.max(1, Math.round(4 / (this.rate * this.reach)));
      const from = edge(term, centre, low, top - LEFT_OUT, step);
      const to = edge(term, centre, high, top - LEFT_OUT, step);
      const sorted = this.breaks(from, centre, to, near);
      let blocks = sorted.slice(1).map((end, i) => block(term, sorted[i], end - sorted[i], top));
      for (let round = 0; round < 60; round += 1) {
        const sum = blocks.reduce((all, one) => all + one.sum, 0);
        if (blocks.every((one) => one.error <= TOLERANCE2 * sum)) break;
        blocks = blocks.flatMap((one) => {
          if (one.error <= TOLERANCE2 * sum) return [one];
          const half = Math.floor(one.n / 2);
          return [block(term, one.start, half, top), block(term, one.start + half, one.n - half, top)];
        });
      }
      return top + Math.log(blocks.reduce((all, one) => all + one.sum, 0));
    }
    /** Where sums over N are cut: finely about the kinks of the noise, as wide as totals smooth them. */
    breaks(from, centre, to, near) {
      const { perRow, variancePerRow } = this.total;
      const found = /* @__PURE__ */ new Set([from, to + 1]);
      const cut = (n) => {
        const at = Math.floor(n) + 1;
        if (at > from && at <= to) found.add(at);
      };
      cut(near[0]);
      for (const kink of near.slice(1)) {
        const width2 = Math.sqrt(Math.max(kink, 1) * variancePerRow) / Math.max(perRow, 1e-300);
        for (const away of [-6, -2, 2, 6]) cut(kink + away * width2);
      }
      const longest = 20 / (this.rate * this.reach);
      for (const direction of [-1, 1]) {
        let n = centre;
        cut(n);
        for (let stride = longest / 2; n > from && n < to; stride *= 1.6) {
          n += direction * Math.min(stride, 4 * (direction > 0 ? n : n / 5));
          cut(n);
          if (direction < 0 && n < 4 * NODES2) break;
        }
      }
      const sorted = [...found].sort((a, b) => a - b);
      return sorted.filter((at, i) => i === 0 || i === sorted.length - 1 || at - sorted[i - 1] > NODES2 / 2);
    }
    /** Log of the sum over A of its density times that of the noise; N >= 1. */
    sumOverTotals(n) {
      const { total, rate: rate2 } = this;
      total.at(n);
      this.left = this.reach * n;
      const isSum = total.support === "integers";
      const least = total.support === "real" ? -Infinity : 0;
      const most = isSum ? total.most : Infinity;
      const kinks = this.second === void 0 ? [this.first] : [this.first, this.reach * n - this.second];
      kinks.sort((a, b) => a - b);
      const pieces = [];
      let start2 = least;
      for (let i = 0; i <= kinks.length; i += 1) {
        const end = i < kinks.length ? Math.min(isSum ? Math.floor(kinks[i]) : kinks[i], most) : most;
        if (isSum ? end >= start2 : end > start2) {
          pieces.push(this.piece(start2, end, rate2 * (kinks.length - 2 * i)));
          start2 = isSum ? end + 1 : end;
        }
      }
      let top = -Infinity;
      for (const piece of pieces) top = Math.max(top, piece.top);
      if (top === -Infinity) return top;
      let sum = 0;
      for (const piece of pieces) if (piece.top > top - LEFT_OUT) sum += this.sumOfPiece(piece, top);
      return top + Math.log(sum);
    }
    /** A range of totals between kinks: in positions, and where in it the weight is highest. */
    piece(start2, end, slope2) {
      const { total } = this;
      const positive = total.support === "positive";
      const [from, to] = positive ? [Math.log(start2), Math.log(end)] : [start2, end];
      let mode2 = Math.min(Math.max(total.mode(slope2), from), to);
      if (total.support === "integers") mode2 = Math.round(mode2);
      const piece = { from, to, slope: slope2, mode: mode2, top: 0 };
      piece.top = this.weight(mode2);
      return piece;
    }
    weight(position) {
      const { total } = this;
      const amount = total.support === "positive" ? Math.exp(position) : position;
      return total.log(position) - this.distance(amount);
    }
    /** How far the released sums lie from a total, in scales of the noise. */
    distance(amount) {
      const second = this.second === void 0 ? 0 : Math.abs(this.second - this.left + amount);
      return this.rate * (Math.abs(this.first - amount) + second);
    }
    sumOfPiece({ from, to, slope: slope2, mode: mode2, top: own }, top) {
      const isSum = this.total.support === "integers";
      if (isSum) {
        const steep = Math.abs(this.total.slope(mode2, slope2));
        const bend = this.total.curvature(mode2, slope2);
        const steps2 = 2 * LEFT_OUT / (steep + Math.sqrt(steep * steep + 2 * bend * LEFT_OUT) || Number.MIN_VALUE);
        if (Math.min(2 * steps2, to - from) < MOST_STEPS) return this.walk(mode2, from, to, slope2, Math.exp(own - top));
      }
      return this.march(mode2, to, 1, slope2, own, top) + (mode2 > from ? this.march(isSum ? mode2 - 1 : mode2, from, -1, slope2, own, top) : 0);
    }
    /** Sum whole numbers from a mode to both ends, each term from the one before, until little is left. */
    walk(mode2, from, to, slope2, own) {
      const { total } = this;
      const least = own * Math.exp(-LEFT_OUT);
      const tilt = Math.exp(slope2);
      let sum = own;
      let term = own;
      for (let x = mode2; x < to && term > least; x += 1) {
        term *= total.ratio(x) * tilt;
        sum += term;
      }
      term = own;
      for (let x = mode2 - 1; x >= from && term > least; x -= 1) {
        term /= total.ratio(x) * tilt;
        sum += term;
      }
      return sum;
    }
    /** Sum from a position towards an end, panel by panel, until little is left. */
    march(start2, end, direction, slope2, own, top) {
      const { total } = this;
      const isSum = total.support === "integers";
      const floor = own - LEFT_OUT;
      let [sum, position, here] = [0, start2, this.weight(start2)];
      for (let panel = 0; panel < 400; panel += 1) {
        const left = direction * (end - position) + Number(isSum);
        if (!(left > 0) || here < floor) break;
        const fall = panel ? FALL : FIRST_FALL;
        const steep = Math.max(-direction * total.slope(position, slope2), 0);
        const bend = total.curvature(position, slope2);
        let length = 2 * fall / (steep + Math.sqrt(steep * steep + 2 * bend * fall) || Number.MIN_VALUE);
        if (isSum) length = Math.max(Math.ceil(length), 2 * NODES2);
        length = Math.min(length, left);
        for (let shorter = 0; shorter < 30; shorter += 1) {
          if (isSum && length <= 2 * NODES2) break;
          const last = this.weight(position + direction * (isSum ? length - 1 : length));
          if (here - last < 1.5 * fall) break;
          length *= 0.7;
          if (isSum) length = Math.max(Math.floor(length), 2 * NODES2);
        }
        if (isSum && length <= 2 * NODES2) {
          for (let i = 0; i < length; i += 1) sum += Math.exp(this.weight(position + direction * i) - top);
        } else {
          const count2 = panel ? FURTHER_NODES : NODES2;
          const { nodes, weights } = gram(count2, isSum ? length : Infinity);
          let part = 0;
          for (let i = 0; i < count2; i += 1) {
            const away = (length * (nodes[i] + 1) - Number(isSum)) / 2;
            part += weights[i] * Math.exp(this.weight(position + direction * away) - top);
          }
          sum += length * part;
        }
        position += direction * length;
        if (isSum && direction * (end - position) < 0) break;
        here = this.weight(position);
      }
      return sum;
    }
  };
  function logAdd(a, b) {
    const top = Math.max(a, b);
    return top === -Infinity ? top : top + Math.log1p(Math.exp(Math.min(a, b) - top));
  }
  function mode(term, start2, low, high, step) {
    let [a, centre, b] = [start2, start2, start2];
    for (let stride = Math.max(step, 1); b < high; stride *= 2) {
      const next = Math.min(b + stride, high);
      if (term(next) <= term(centre)) {
        b = next;
        break;
      }
      [a, centre, b] = [centre, next, next];
    }
    for (let stride = Math.max(step, 1); a === centre && a > low; stride *= 2) {
      const next = Math.max(a - stride, low);
      if (term(next) <= term(centre)) {
        a = next;
        break;
      }
      [a, centre, b] = [next, next, centre];
    }
    while (b - a > 2) {
      const top = term(centre);
      if (top - term(a) < 0.5 && top - term(b) < 0.5) break;
      const inner = b - centre > centre - a ? centre + Math.ceil(0.38 * (b - centre)) : centre - Math.ceil(0.38 * (centre - a));
      if (inner === centre || inner === a || inner === b) break;
      if (term(inner) > top) {
        if (inner > centre) a = centre;
        else b = centre;
        centre = inner;
      } else if (inner > centre) b = inner;
      else a = inner;
    }
    return centre;
  }
  function edge(term, centre, end, level, step) {
    const direction = Math.sign(end - centre);
    if (direction === 0) return centre;
    let [inner, stride] = [centre, step];
    let outer2 = centre;
    while (outer2 !== end) {
      const next = direction > 0 ? Math.min(centre + stride, end) : Math.max(centre - stride, end);
      outer2 = next;
      if (term(next) < level) break;
      inner = next;
      stride *= 2;
    }
    if (term(outer2) >= level) return outer2;
    while (Math.abs(outer2 - inner) > Math.max(1, Math.abs(inner - centre) / 8)) {
      const middle = Math.round((inner + outer2) / 2);
      if (middle === inner || middle === outer2) break;
      if (term(middle) < level) outer2 = middle;
      else inner = middle;
    }
    return outer2;
  }
  function block(term, start2, n, top) {
    let sum = 0;
    if (n <= NODES2 + 4) {
      for (let i = 0; i < n; i += 1) sum += Math.exp(term(start2 + i) - top);
      return { start: start2, n, sum, error: 0 };
    }
    const { nodes, weights, tails } = sumRule(NODES2, n);
    let [last, before2] = [0, 0];
    for (let i = 0; i < NODES2; i += 1) {
      const value = Math.exp(term(start2 + nodes[i]) - top);
      sum += weights[i] * value;
      last += tails[0][i] * value;
      before2 += tails[1][i] * value;
    }
    return { start: start2, n, sum: n * sum, error: n * (Math.abs(last) + Math.abs(before2)) };
  }

  // src/clipped.js
  var LEFT_OUT2 = 36;
  var LEAST = 1e-18;
  var RESOLVED = 1e-5;
  var FARTHEST = 40;
  var TILTS = Array.from({ length: 26 }, (_, i) => 2 ** (i - 18));
  var LARGEST_BOUND = 256;
  var clippedPoisson = (upper) => (logRate) => {
    const rate2 = Math.exp(logRate);
    return clipped(upper, (x) => logPoisson(x, rate2), (x) => rate2 / (x + 1), rate2);
  };
  var clippedFailures = (upper, successes2) => (logit) => {
    const success = 1 / (1 + Math.exp(-logit));
    const failure = 1 / (1 + Math.exp(logit));
    const log = (x) => x === 0 ? -successes2 * Math.log1p(Math.exp(-logit)) : logBinomial(x, successes2 + x, failure, success) - Math.log1p(x / successes2);
    return clipped(upper, log, (x) => (x + successes2) / (x + 1) * failure, successes2 * failure / success);
  };
  function clipped(upper, log, ratio2, mean) {
    const found = Float64Array.from({ length: upper + 1 }, (_, x) => Math.exp(log(x)));
    if (mean > upper) {
      found[upper] = Math.max(1 - found.subarray(0, upper).reduce((all, one) => all + one, 0), 0);
    } else {
      let term = found[upper];
      for (let x = upper; term > 1e-18 * found[upper] && x < 1e7; x += 1) {
        term *= ratio2(x);
        found[upper] += term;
      }
    }
    return found;
  }
  var ClippedLikelihood = class extends Likelihood {
    /**
     * @param {(position: number) => Float64Array} record Probabilities of 0..C of one record.
     * @param {{values: number[], scale: number, reach: number}} noisy The released sum A, and unless N is public
     *   C N - A; the noise's scale; C.
     * @param {object} nPrior `low`, `high`, `log(n)`.
     */
    constructor(record, noisy, nPrior) {
      super({ given: (position) => this.given(position) }, noisy, nPrior);
      this.record = record;
      this.steep = this.rate * noisy.values.length;
    }
    given(position) {
      const chances = this.record(position);
      let [mean, square] = [0, 0];
      chances.forEach((chance2, x) => mean += x * chance2);
      chances.forEach((chance2, x) => square += (x - mean) ** 2 * chance2);
      this.chances = chances;
      this.total.perRow = mean;
      this.total.variancePerRow = square;
      this.waves = /* @__PURE__ */ new Map();
      this.sizes = null;
      this.below = bounds(chances, (x) => mean - x);
      this.above = bounds(chances, (x) => x - mean);
    }
    /** Where n clipped records would have a total, and about how well it is known there. */
    start(exact) {
      this.found ??= this.fitted(exact);
      return this.found;
    }
    fitted({ n, total }) {
      const rows = Math.max(n, 1);
      const wanted = Math.min(Math.max(total / rows, 0.25 / rows), this.reach - 0.25 / rows);
      const mean = (position) => {
        this.given(position);
        return this.total.perRow;
      };
      let [low, high] = [-FARTHEST, FARTHEST];
      const falls = mean(low) > mean(high);
      while (high - low > 1e-9) {
        const middle = (low + high) / 2;
        if (mean(middle) < wanted !== falls) low = middle;
        else high = middle;
      }
      const slope2 = Math.abs(mean(low + 0.01) - mean(low - 0.01)) / 0.02;
      const error = Math.sqrt(rows * this.total.variancePerRow + 2 / this.rate ** 2) / rows;
      return { at: low, width: Math.min(error / Math.max(slope2, 1e-300), 10) };
    }
    /** Whether the sums of a position are so far above what can be told that its posterior is right. */
    isResolved(position) {
      if (this.looked?.position !== position) this.looked = { position, terms: /* @__PURE__ */ new Map() };
      this.hint = null;
      this.total.given(position);
      this.sumOverN(this.looked.terms);
      const n = this.hint ?? this.nPrior.low;
      return n < 1 || this.sumOverTotals(n) - this.highest(n) > Math.log(RESOLVED);
    }
    /** Log of the noise's density where it is highest. */
    highest(n) {
      return this.second === void 0 ? 0 : -this.rate * Math.abs(this.reach * n - this.second - this.first);
    }
    sumOverTotals(n) {
      const { first, second, reach: reach2, steep } = this;
      const mean = n * this.total.perRow;
      const start2 = Math.floor(mean - Math.min(margin(this.below, n), mean));
      const last = Math.ceil(mean + Math.min(margin(this.above, n), reach2 * n - mean));
      const period = 2 ** Math.ceil(Math.log2(last - start2 + 1));
      const end = start2 + period;
      const other = second === void 0 ? first : reach2 * n - second;
      const [low, high] = [Math.min(first, other), Math.max(first, other)];
      const inside2 = (x) => Math.min(Math.max(x, start2), end);
      const [left, right] = [inside2(low), inside2(high)];
      const [atStart, atLeft] = [Math.exp(Math.min(steep * (start2 - low), 0)), Math.exp(Math.min(steep * (left - low), 0))];
      const [atRight, atEnd] = [Math.exp(Math.min(steep * (high - right), 0)), Math.exp(Math.min(steep * (high - end), 0))];
      let sum = 0;
      for (const { j, logSize, angle, twice, rising, level, falling } of this.wavesOf(period, n)) {
        if (n * logSize < -LEFT_OUT2) break;
        const size = twice * Math.exp(n * logSize);
        const turn = (x) => n * angle - 2 * Math.PI * modulo(j * x, period) / period;
        const [s, l, r] = [turn(start2), turn(left), turn(right)];
        sum += size * (real(rising, l, left > start2 ? atLeft : 0) - real(rising, s, left > start2 ? atStart : 0) + (j === 0 ? right - left : real(level, r, 1) - real(level, l, 1)) + real(falling, s, right < end ? atEnd : 0) - real(falling, r, right < end ? atRight : 0));
      }
      return this.highest(n) + Math.log(Math.max(sum / period, LEAST));
    }
    /** The frequencies of a period at which a power of phi matters, the largest first, and the noise's series there. */
    wavesOf(period, n) {
      const known = this.waves.get(period);
      if (known && n >= known.least) return known.waves;
      const least = n / 2;
      const waves = [];
      const last = Math.min(Math.ceil(this.endOfWaves(least) * period / (2 * Math.PI)), period / 2);
      for (let j = 0; j <= last; j += 1) {
        const w = 2 * Math.PI * j / period;
        const { logSize, angle } = characteristic(this.chances, w);
        if (least * logSize > -LEFT_OUT2) {
          waves.push({
            j,
            logSize,
            angle,
            twice: j === 0 || 2 * j === period ? 1 : 2,
            rising: overLessOne(this.steep, w),
            level: j === 0 ? null : overLessOne(0, w),
            falling: overLessOne(-this.steep, w)
          });
        }
      }
      waves.sort((a, b) => b.logSize - a.logSize);
      this.waves.set(period, { least, waves });
      return waves;
    }
    /** The frequency beyond which no n-th power of phi matters, told from a scan: phi is a polynomial of degree C. */
    endOfWaves(n) {
      const steps2 = 4 * this.reach + 4;
      if (!this.sizes) {
        this.sizes = Array.from({ length: steps2 + 1 }, (_, i) => characteristic(this.chances, Math.PI * i / steps2).logSize);
      }
      const last = this.sizes.findLastIndex((logSize) => n * logSize > -LEFT_OUT2);
      const normal = last > 0 ? Infinity : Math.sqrt(2.1 * LEFT_OUT2 / (n * this.total.variancePerRow + 1e-300));
      return Math.min(Math.PI * (last + 1) / steps2, normal);
    }
  };
  function characteristic(chances, w) {
    const [cos, sin] = [Math.cos(w), Math.sin(w)];
    let [re, im] = [0, 0];
    for (let x = chances.length - 1; x >= 0; x -= 1) [re, im] = [re * cos - im * sin + chances[x], re * sin + im * cos];
    return { logSize: w === 0 ? 0 : 0.5 * Math.log(re * re + im * im), angle: Math.atan2(im, re) };
  }
  function bounds(chances, away) {
    return TILTS.map((tilt) => tilt / chances.length).map((tilt) => {
      let sum = 0;
      chances.forEach((chance2, x) => sum += chance2 * Math.expm1(tilt * away(x)));
      return { tilt, excess: Math.max(Math.log1p(sum), 0) };
    });
  }
  function margin(found, n) {
    return found.reduce((least, { tilt, excess: excess2 }) => Math.min(least, (LEFT_OUT2 + n * excess2) / tilt), Infinity);
  }
  function overLessOne(slope2, w) {
    const re = Math.expm1(slope2) * Math.cos(w) - 2 * Math.sin(w / 2) ** 2;
    const im = -Math.exp(slope2) * Math.sin(w);
    const square = re * re + im * im;
    return [re / square, -im / square];
  }
  function real([re, im], angle, size) {
    return size === 0 ? 0 : size * (re * Math.cos(angle) - im * Math.sin(angle));
  }
  function modulo(x, period) {
    const rest = x % period;
    return rest < 0 ? rest + period : rest;
  }

  // src/clipping.js
  var NEGLIGIBLE = 0.01;
  var LONGEST2 = 1e6;
  function poissonShift(rate2, upper) {
    return excess(rate2, upper, (x) => logPoisson(x, rate2), (x) => rate2 / (x + 1));
  }
  function failuresShift(probability, upper, successes2) {
    const failure = 1 - probability;
    const mean = successes2 * failure / probability;
    const log = (x) => x === 0 ? successes2 * Math.log(probability) : logBinomial(x, successes2 + x, failure, probability) - Math.log1p(x / successes2);
    const lost = excess(mean, upper, log, (x) => (x + successes2) / (x + 1) * failure);
    return successes2 / (successes2 + mean - lost) - probability;
  }
  function excess(mean, upper, log, ratio2) {
    const isLow = mean < upper;
    let x = isLow ? upper + 1 : upper - 1;
    let probability = Math.exp(log(x));
    let sum = 0;
    for (let steps2 = 0; steps2 < LONGEST2 && x >= 0; steps2 += 1) {
      const term = Math.abs(x - upper) * probability;
      sum += term;
      if (term < 1e-14 * sum || term === 0 && steps2 > 100) break;
      if (isLow) probability *= ratio2(x);
      else if (x > 0) probability /= ratio2(x - 1);
      x += isLow ? 1 : -1;
    }
    return isLow ? sum : mean - upper + sum;
  }

  // src/intervals.js
  var CENTRAL = "central";
  var HIGHEST_DENSITY = "highest-density";
  var AT_AN_END = 0.01;
  var LEVELS2 = 17;
  function intervalOf(quantile, mass, kind, ends2) {
    if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
    if (kind === CENTRAL) return [quantile((1 - mass) / 2), quantile((1 + mass) / 2)];
    if (kind !== HIGHEST_DENSITY) throw new ReleaseError("usage", `an interval is ${CENTRAL} or ${HIGHEST_DENSITY}`);
    const last = LEVELS2 - 1;
    const candidates = Array.from({ length: LEVELS2 }, (_, i) => {
      const below = (1 - mass) * Math.sin(i * Math.PI / (2 * last)) ** 2;
      return [i === 0 ? ends2[0] : quantile(below), i === last ? ends2[1] : quantile(below + mass)];
    });
    const widths = candidates.map(([low, high]) => high - low);
    const least = Math.min(...widths);
    const isNear = (i) => widths[i] <= (1 + AT_AN_END) * least;
    const [first, end] = [Number.isFinite(ends2[0]) && isNear(0), Number.isFinite(ends2[1]) && isNear(last)];
    if (first && end && isNear(last / 2)) return candidates[last / 2];
    if (first) return candidates[0];
    return end ? candidates[last] : candidates[widths.indexOf(least)];
  }

  // src/families.js
  var beta = (a, b) => `Beta(${a}, ${b})`;
  var failures = (successes2) => ({
    parameter: "probability",
    prior: "Beta",
    defaultPrior: () => beta(1, 1),
    total: (known) => new NegativeBinomialTotal(successes2(known)),
    update: ([a, b], n, total, known) => [a + successes2(known) * n, b + total],
    limits: (known) => [successes2(known) / (successes2(known) + known.upper), 1],
    clippingShift: (value, known) => failuresShift(value, known.upper, successes2(known)),
    clippedRecord: (known) => clippedFailures(known.upper, successes2(known))
  });
  var rate = (parameter, shape = () => 1) => ({
    parameter,
    prior: "Gamma",
    defaultPrior: (known) => `SpreadGamma(${known.upper / shape(known)})`,
    total: (known, step) => new GammaTotal(shape(known), step),
    update: ([a, b], n, total, known) => [a + shape(known) * n, b + total],
    limits: (known) => [shape(known) / known.upper, Infinity],
    refusesClipping: true
  });
  var scale = (parameter, share3 = 1) => ({
    parameter,
    prior: "InverseGamma",
    defaultPrior: (known) => `SpreadInverseGamma(${known.upper})`,
    // w T is Gamma(w, 1 / s): of the rate w / s in T's unit.
    total: (_known, step) => new ReversedGammaTotal(share3, step),
    update: ([a, b], n, total) => [a + share3 * n, b + share3 * total],
    limits: (known) => [0, known.upper],
    refusesClipping: true
  });
  var ReversedGammaTotal = class extends GammaTotal {
    given(logScale) {
      super.given(Math.log(this.shape) - logScale);
    }
  };
  var successes = (trials2) => ({
    parameter: "probability",
    prior: "Beta",
    defaultPrior: () => beta(1, 1),
    total: (known) => new BinomialTotal(trials2(known)),
    isBounded: true,
    update: ([a, b], n, total, known) => [a + total, b + trials2(known) * n - total]
  });
  var ONE_SUM = {
    bernoulli: { ...successes(() => 1), interval: HIGHEST_DENSITY },
    binomial: { ...successes((known) => known.upper), interval: HIGHEST_DENSITY },
    poisson: {
      parameter: "rate",
      prior: "Gamma",
      defaultPrior: (known) => `Gamma(1, ${2 / known.upper})`,
      total: () => new PoissonTotal(),
      update: ([a, b], n, total) => [a + total, b + n],
      limits: (known) => [0, known.upper],
      interval: HIGHEST_DENSITY,
      clippingShift: (value, known) => poissonShift(value, known.upper),
      clippedRecord: (known) => clippedPoisson(known.upper)
    },
    geometric: failures(() => 1),
    negative_binomial: failures((known) => known.constants.successes),
    exponential: rate("rate"),
    gamma: rate("rate", (known) => known.constants.shape),
    weibull: rate("rate"),
    pareto: rate("shape"),
    laplace: scale("scale"),
    normal_known_mean: scale("variance", 0.5),
    normal_known_variance: {
      parameter: "mean",
      prior: "Normal",
      defaultPrior: ({ lower, upper }) => `Normal(${(lower + upper) / 2}, ${(upper - lower) / 4})`,
      total: (known, step) => new NormalTotal(known.constants.variance, known.lower, step),
      limits: ({ lower, upper }) => [lower, upper],
      update: ([loc, sd], n, total, known) => {
        const { variance } = known.constants;
        const rows = variance / sd / sd;
        return [(rows * loc + total) / (rows + n), Math.sqrt(variance / (rows + n))];
      }
    }
  };
  function knownOf(statistic) {
    const { lower, upper, constants = {} } = statistic.parameters;
    const number2 = (text) => text === null || text === void 0 ? 0 : toNumber(parseRational(text));
    return {
      lower: number2(lower),
      upper: number2(upper),
      constants: Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, number2(text)]))
    };
  }
  function noisySums(statistic, values, n) {
    const scale2 = toNumber(parseRational(statistic.scale));
    if (statistic.family === "bernoulli") {
      const [first, second] = statistic.design === "minimal" ? values : [values[1], values[0]];
      return { values: [first, second].filter((value) => value !== void 0).map(Number), scale: scale2, reach: 1, step: 1 };
    }
    const known = knownOf(statistic);
    if (statistic.design === "minimal") {
      const total = statistic.quantities.find((quantity2) => quantity2.name === "total");
      const step = parseRational(Object.values(total.coefficients)[0]);
      const atZero = parseRational(total.public_n_coefficient);
      const lower = parseRational(statistic.parameters.lower ?? "0");
      const shift = (lower.n * atZero.d - atZero.n * lower.d) * step.d;
      const lowest = shift / (lower.d * atZero.d * step.n);
      const reach3 = Math.round((known.upper - known.lower) / toNumber(step));
      return { values: [Number(values[0] - lowest * BigInt(n))], scale: scale2, reach: reach3, step: toNumber(step) };
    }
    const reach2 = Number(statistic.partition_total);
    return { values: values.map(Number), scale: scale2, reach: reach2, step: (known.upper - known.lower) / reach2 };
  }

  // src/plan.js
  var ZERO2 = rational(0n);
  var NOISE_REACH = rational(64n);
  var LARGEST_SCALE2 = 2 ** 55;
  var MOST_CELLS2 = 1e7;
  var MOST_COMPONENTS = 65536;
  function derive(plan, order) {
    const { privacy } = plan;
    onlyKeys(plan, ["dataset", "derived", "format_version", "groups", "max_total_rows", "name", "privacy", "statistics", "window"], ["hierarchies", "where"], "plan");
    checkCondition(plan.where, "where");
    const measure = isMapping2(privacy) && Object.hasOwn(privacy, "rho") ? "rho" : "epsilon";
    onlyKeys(privacy, [measure, "neighboring", "unit"], [], "privacy");
    if (!isMapping2(plan.derived) || !Object.values(plan.derived).every(isMapping2)) throw refused2("derived", "it is no mapping");
    if (plan.window !== null) {
      onlyKeys(plan.window, ["column", "every", "time_zone"], ["files_by_window"], "window");
      const { files_by_window: files } = plan.window;
      if (files !== void 0 && typeof files !== "string") throw refused2("window", "files_by_window is no text");
    }
    const unit = privacy.unit === "row" ? null : privacy.unit;
    if (unit !== null) {
      onlyKeys(unit, ["column", "max_rows", "nulls"], ["max_rows_per_cell", "type"], "privacy.unit");
      if (typeof unit.column !== "string" || !["drop", "own_unit"].includes(unit.nulls)) throw refused2("privacy.unit", "it is no unit");
    }
    const maxRows = unit ? Number(integer(unit.max_rows, "privacy.unit.max_rows")) : 1;
    if (!(maxRows >= 1)) throw refused2("privacy.unit", "max_rows is no count");
    const isBounded = unit?.max_rows_per_cell !== void 0;
    const maxInCell = isBounded ? Number(integer(unit.max_rows_per_cell, "privacy.unit.max_rows_per_cell")) : maxRows;
    if (isBounded && !(maxInCell >= 1 && maxInCell < maxRows)) throw refused2("privacy.unit", "max_rows_per_cell is no count below max_rows");
    const replaces = privacy.neighboring === "replace_one";
    if (!replaces && privacy.neighboring !== "add_or_remove_one") throw refused2("privacy", "neighboring is no relation");
    const loss = number(privacy[measure], `privacy.${measure}`);
    if (compare(loss, ZERO2) <= 0) throw refused2(`privacy.${measure}`, "it is not above 0");
    const heading = cellsOf(plan.groups, order.groups, "groups");
    const entries = ordered(plan.statistics, order.statistics, "statistics");
    checkVariables(plan.statistics, order.variables);
    checkHierarchies(plan.hierarchies, plan.statistics);
    const shares2 = entries.reduce((sum, [name, entry]) => add(sum, share(name, entry)), ZERO2);
    const mayBeMinimal = replaces && unit === null && plan.window === null && plan.where === void 0;
    const shared = {
      replaces,
      unit,
      maxInCell,
      isFiltered: plan.where !== void 0,
      maxTotalRows: integer(plan.max_total_rows, "max_total_rows")
    };
    const statistics = entries.map(([name, entry]) => {
      const amount = divide(multiply(loss, share(name, entry)), shares2);
      const stated = statedCells(name, entry, plan.groups, order.variables);
      const { cells, groups } = stated ?? heading;
      const hasGroups = groups.length > 0;
      const rows = Math.min(maxRows, maxInCell * cells);
      const price = { measure, amount };
      return { name, entry, price, stated, terms: { ...shared, rows, cells, hasGroups, mayBeMinimal: mayBeMinimal && !hasGroups } };
    });
    return {
      heading: {
        name: plan.name,
        dataset: plan.dataset,
        [measure]: format(loss),
        neighboring: privacy.neighboring,
        unit: unit ? `column:${unit.column}` : "row",
        ...unit ? { max_rows: maxRows, unit_nulls: unit.nulls } : {},
        ...isBounded ? { max_rows_per_cell: maxInCell } : {},
        max_total_rows: Number(plan.max_total_rows),
        ...heading
      },
      statistics
    };
  }
  function cellsOf(mapping, names, place) {
    const groups = ordered(mapping, names, place).map(([column, domain]) => group(column, domain));
    const cells = groups.reduce((product, { size }) => product * size, 1);
    if (cells > MOST_CELLS2) throw refused2(place, "there are too many cells");
    return { cells, groups: groups.map(({ stated }) => stated) };
  }
  function statedCells(name, { groups }, ofPlan, variables) {
    if (groups === void 0) return null;
    const place = `statistics.${shown(name)}.groups`;
    if (!isMapping2(groups) || encode(groups) === encode(ofPlan)) throw refused2(place, "they are none of its own");
    const order = variables.find(([of2, key]) => of2 === name && key === "groups");
    return cellsOf(groups, order?.[2], place);
  }
  function statisticFields({ name, entry, price, stated: cells, terms: shared }, stated) {
    const isFiltered = shared.isFiltered || entry.where !== void 0;
    const terms = { ...shared, isFiltered, mayBeMinimal: shared.mayBeMinimal && !isFiltered };
    const make = Object.hasOwn(BLOCKS, entry.family) ? BLOCKS[entry.family] : null;
    if (make !== null) checkEntry(entry, terms, `statistics.${shown(name)}`);
    const isKnown = isComputedAgain(entry);
    const place = `statistics.${shown(name)}`;
    const isOnCone = asksForCone(entry, place);
    const ofNoise = isOnCone ? CONE_NOISE : "discrete_laplace";
    const mechanism = entry.sample === void 0 ? ofNoise : "exponential";
    const fields = { name, family: entry.family, [price.measure]: format(price.amount), mechanism, ...cells };
    if (isOnCone) return Object.assign(fields, coneFields(entry, price, terms, place));
    if (entry.sample !== void 0 && entry.family === "histogram") {
      return Object.assign(fields, {
        columns: [entry.column],
        rows_of: sentence(entry, terms),
        design: "partition_of_unity",
        ...quantileFields(entry, price, terms, stated, place)
      });
    }
    if (entry.sample !== void 0) {
      if (!isKnown || !Object.hasOwn(ONE_SUM, entry.family)) throw refused2(place, "no sample is of this family");
      const block2 = make(entry, terms.mayBeMinimal, stated, place);
      return Object.assign(fields, {
        columns: [entry.column],
        rows_of: sentence(entry, terms),
        design: block2.minimalL1 === void 0 ? "partition_of_unity" : "minimal",
        parameter: ONE_SUM[entry.family].parameter,
        ...sampleFields(entry.sample, price, stated, place),
        parameters: block2.parameters
      });
    }
    let l1 = integer(stated.l1_sensitivity, `${place}.l1_sensitivity`);
    if (isKnown) {
      const sums = make(entry, terms.mayBeMinimal, stated, place);
      const isCounted = entry.count_clipped !== void 0;
      const block2 = isCounted ? besideSums(sums, entry.count_clipped, `${place}.count_clipped`) : sums;
      const ofPrivateN = isCounted ? "bounded" : "partition_of_unity";
      if (block2.components.length > MOST_COMPONENTS) throw refused2(place, "it has too many components");
      const ofRecord = block2.recordL1;
      const rows = entry.rows_of === "units" ? 1 : terms.rows;
      l1 = block2.minimalL1 ?? ofRecord * (terms.replaces ? 2n : 1n) * BigInt(rows);
      const squared = squaredSensitivity(block2, { ...terms, rows });
      if (price.measure === "rho" && integer(stated.l2_squared, `${place}.l2_squared`) !== squared) {
        throw refused2(`${place}.l2_squared`, "it is not what the plan's bounds make it");
      }
      const noise = noiseFields(l1, price, stated, place);
      const reach2 = add(rational(block2.largest * terms.maxTotalRows), multiply(NOISE_REACH, number(noise.scale, `${place}.scale`)));
      Object.assign(fields, noise, {
        columns: [entry.column],
        rows_of: sentence(entry, terms),
        design: block2.minimalL1 === void 0 ? ofPrivateN : "minimal",
        components: block2.components,
        l1_sensitivity: String(l1),
        partition_total: block2.minimalL1 === void 0 && !isCounted ? String(ofRecord) : null,
        value_type: compare(reach2, rational(2n ** 63n)) < 0 ? "int64" : "decimal128(38, 0)",
        quantities: block2.quantities.map((one) => quantity(one, block2.components)),
        ...block2.weight ? { moment_weight: format(block2.weight) } : {},
        ...isCounted ? { count_clipped: block2.counted } : {},
        parameters: block2.parameters
      });
      return fields;
    }
    if (l1 < 1n) throw refused2(`${place}.l1_sensitivity`, "it is below 1");
    return Object.assign(fields, noiseFields(l1, price, stated, place));
  }
  function noiseFields(l1, { measure, amount }, stated, place) {
    if (measure === "epsilon") return { scale: leastScale(l1, amount).text };
    const squared = integer(stated.l2_squared, `${place}.l2_squared`);
    if (squared < 1n || squared > l1 * l1) throw refused2(`${place}.l2_squared`, "it is below 1, or above the square of the L1 sensitivity");
    const shift = ofNumber(numberRoot(divide(multiply(rational(2n), amount), rational(squared))));
    return { l2_squared: String(squared), scale: leastScale(1n, shift).text };
  }
  function isComputedAgain({ family, within_unit: within2 }) {
    return Object.hasOwn(BLOCKS, family) && within2 === void 0;
  }
  function leastScale(l1, epsilon) {
    let down = toNumber(epsilon);
    if (compare(ofNumber(down), epsilon) > 0) down = nextDown(down);
    const exact = divide(rational(l1), ofNumber(down));
    let scale2 = toNumber(exact);
    if (compare(ofNumber(scale2), exact) < 0) scale2 = nextUp(scale2);
    if (!(scale2 > 0 && scale2 <= LARGEST_SCALE2)) throw refused2("statistics", "a noise scale is above 2^55");
    return { scale: scale2, text: format(ofNumber(scale2)) };
  }
  function share(name, entry) {
    const found = number(entry?.share, `statistics.${shown(name)}.share`);
    if (compare(found, rational(1n, 1000000n)) < 0 || compare(found, rational(1000000n)) > 0) {
      throw refused2(`statistics.${shown(name)}.share`, "it is no share");
    }
    return found;
  }
  function sentence(entry, terms) {
    const ofUnits = unitSentence(entry, terms);
    return terms.isFiltered ? `${ofUnits ?? "of rows"}, where the spec's condition holds` : ofUnits;
  }
  function checkCondition(condition, place) {
    if (condition !== void 0 && typeof condition !== "string" && !isMapping2(condition)) throw refused2(place, "it is no condition");
  }
  function unitSentence(entry, { unit, rows, maxInCell, hasGroups }) {
    if (unit === null) return null;
    if (entry.rows_of !== "units") {
      const inCell = maxInCell < rows ? `, at most ${maxInCell} in a cell` : "";
      return `of rows kept: at most ${rows} of each unit${inCell}`;
    }
    if (entry.family === "normal") {
      const where = hasGroups ? " in one cell" : "";
      return `of units: the mean of each unit's rows${where}; the variance is that of these means`;
    }
    return `of units: one row of each unit, chosen by hash${hasGroups ? ", in its cell" : ""}`;
  }
  function quantity({ name, category = null, coefficients, ofPublicN = ZERO2 }, components) {
    const stated = coefficients.map((weight, i) => [components[i], weight]).filter(([, weight]) => weight.n !== 0n).map(([component2, weight]) => [component2, format(weight)]);
    return { name, category, coefficients: Object.fromEntries(stated), public_n_coefficient: format(ofPublicN) };
  }
  function ordered(mapping, names, place) {
    const keys = Object.keys(mapping ?? {});
    if (!Array.isArray(names) || names.length !== keys.length || !names.every((name) => Object.hasOwn(mapping, name)) || new Set(names).size !== names.length) {
      throw refused2(`declared_order.${place}`, "its names are not those of the plan");
    }
    return names.map((name) => [name, mapping[name]]);
  }
  function checkHierarchies(hierarchies, statistics) {
    if (hierarchies === void 0) return;
    if (!isMapping2(hierarchies) || Object.keys(hierarchies).length === 0) throw refused2("hierarchies", "it is no mapping of trees");
    for (const [name, levels] of Object.entries(hierarchies)) {
      const entries = Array.isArray(levels) ? levels.map((level) => Object.hasOwn(statistics, `${name}.${level}`) ? statistics[`${name}.${level}`] : null) : [];
      const isTree = entries.length >= 2 && new Set(levels).size === levels.length && entries.every((entry) => entry !== null && entry.family === entries[0].family);
      if (!isTree) throw refused2(`hierarchies.${shown(name)}`, "its levels are not statistics of one family");
    }
  }
  function checkVariables(statistics, variables) {
    if (!Array.isArray(variables)) throw refused2("declared_order.variables", "it is no list");
    const seen = /* @__PURE__ */ new Set();
    for (const [name, key, names, ...more] of variables) {
      const entry = Object.hasOwn(statistics, name) ? statistics[name] : null;
      const hasNone = entry !== null && Object.hasOwn(BLOCKS, entry.family) && key !== "groups";
      const isKnown = entry === null || hasNone || !Object.hasOwn(entry, key);
      if (isKnown || more.length || seen.has(`${name} ${key}`)) throw refused2("declared_order.variables", "its names are not those of the plan");
      seen.add(`${name} ${key}`);
      ordered(entry[key], names, "variables");
    }
  }

  // src/conflict.js
  var THRESHOLD = 1e-4;
  var [MOST2, MOST_MOVED] = [1024, 128];
  var [DEEPEST3, STEP] = [26, 0.5];
  var [LOGITS, HALVINGS, BEND] = [[-45, 33], 24, 0.5];
  var STEPS = Array.from({ length: 37 }, (_, i) => 0.15 + 0.3 * i);
  var LONGEST_NAME = 160;
  var [FEW, NEGLIGIBLE2, PLAIN2] = [200, 0.01, 0.01];
  function worldsOf(distribution) {
    const share3 = (logit) => 1 / (1 + Math.exp(-logit));
    const worlds = [];
    for (let logit = -DEEPEST3; logit < DEEPEST3; logit += STEP) {
      worlds.push({
        value: distribution.quantile(share3(logit + STEP / 2)),
        weight: share3(logit + STEP) - share3(logit)
      });
    }
    const total = worlds.reduce((sum, { weight }) => sum + weight, 0);
    return worlds.map(({ value, weight }) => ({ value, weight: weight / total }));
  }
  function tailOf(worlds, components, scale2, estimate2, n) {
    const noisy = components.filter(({ own, ofN }) => own !== 0 || ofN !== 0);
    const sdOfN = scale2 * Math.sqrt(2 * noisy.reduce((sum, { ofN }) => sum + ofN ** 2, 0));
    const records2 = Math.max(n, 0) + sdOfN;
    let [above, below] = [0, 0];
    for (const { mean, weight } of worlds) {
      if (estimate2 - mean * n <= 0) above += weight;
      if (estimate2 - mean * n >= 0) below += weight;
    }
    if (worlds.length > FEW && Math.min(above, below) >= PLAIN2) return Math.min(above, below);
    const sign = above <= below ? 1 : -1;
    const asked = worlds.map(({ mean, variance, third, weight }) => {
      const coefficients = noisy.map(({ own, ofN }) => Math.abs(own - mean * ofN));
      const gap = sign * (estimate2 - mean * n) - coefficients.reduce((sum, one) => sum + one, 0) / 2;
      const scales2 = coefficients.map((one) => one * scale2);
      return { weight, gap, scales: scales2, variance: records2 * variance, third: sign * records2 * third };
    });
    let tail = 0;
    if (asked.length <= FEW) {
      for (const { weight, gap, scales: scales2, variance, third } of asked) tail += weight * upperTail(gap, scales2, variance, third);
      return Math.min(1, 2 * tail);
    }
    const bounded = asked.map((one) => ({ ...one, bound: one.weight * bound(one) })).sort((a, b) => b.bound - a.bound);
    let left = bounded.reduce((sum, one) => sum + one.bound, 0);
    for (const one of bounded) {
      if (left <= NEGLIGIBLE2 * tail) break;
      tail += one.weight * upperTail(one.gap, one.scales, one.variance, one.third);
      left -= one.bound;
    }
    return Math.min(1, 2 * tail);
  }
  function bound({ gap, scales: scales2, variance }) {
    const last = 0.95 / Math.max(...scales2, 1e-300);
    const noise = 2 * scales2.reduce((sum, one) => sum + one * one, 0);
    const saddle = Math.min(Math.max(gap / (variance + noise), 0), last);
    return Math.min(
      ...[last / 2, last, saddle].map((s) => {
        const moments2 = scales2.reduce((sum, one) => sum - Math.log1p(-((one * s) ** 2)), variance * s * s / 2);
        return Math.exp(Math.min(moments2 - s * gap, 0));
      })
    );
  }
  function upperTail(x, scales2, variance, third) {
    if (x < 0) return 1 - upperTail(-x, scales2, variance, -third);
    const unit = Math.max(...scales2, 1e-300);
    const sum = { scales: scales2.map((one) => one / unit), variance: variance / unit ** 2, step: 0 };
    if (variance > 0) sum.step = Math.max(third, 0) / variance / unit / 2;
    const last = 1 / Math.max(sum.step, 1);
    const at = x / unit;
    let [low, high] = LOGITS;
    for (let i = 0; i < HALVINGS; i += 1) {
      const middle = (low + high) / 2;
      const saddle2 = last / (1 + Math.exp(-middle));
      if (slope(sum, saddle2) - at - 1 / saddle2 > 0) high = middle;
      else low = middle;
    }
    const saddle = last / (1 + Math.exp(-(low + high) / 2));
    const width2 = 1 / Math.sqrt(curvature(sum, saddle) + 1 / saddle ** 2);
    let integral = 0;
    for (const step of STEPS) {
      const line2 = [saddle + width2 * BEND * (Math.cosh(step) - 1), width2 * Math.sinh(step)];
      const along = [width2 * BEND * Math.sinh(step), width2 * Math.cosh(step)];
      const [re, im] = logNormal(sum, line2);
      const [size, angle] = [Math.exp(re - line2[0] * at), im - line2[1] * at];
      let value = times(over([size * Math.cos(angle), size * Math.sin(angle)], line2), along);
      for (const one of sum.scales) value = over(value, minus([1, 0], times(times(line2, line2), [one * one, 0])));
      integral += value[1];
    }
    return Math.min(Math.max(integral * 0.3 / Math.PI, 0), 1);
  }
  function slope({ scales: scales2, variance, step }, s) {
    const noise = scales2.reduce((sum, one) => sum + 2 * one * one * s / (1 - (one * s) ** 2), 0);
    return noise + variance * s / (1 - step * s);
  }
  function curvature({ scales: scales2, variance, step }, s) {
    const of2 = (one) => 2 * one * one * (1 + (one * s) ** 2) / (1 - (one * s) ** 2) ** 2;
    return scales2.reduce((sum, one) => sum + of2(one), 0) + variance / (1 - step * s) ** 2;
  }
  function logNormal({ variance, step }, s) {
    const half = times([variance / 2, 0], times(s, s));
    if (step === 0) return half;
    const u = [step * s[0], step * s[1]];
    if (Math.hypot(...u) < 1e-3) {
      const inner = [1 / 3 + 0.25 * u[0], 0.25 * u[1]];
      const [re, im] = times(u, inner);
      return times(half, [1 + 2 * re, 2 * im]);
    }
    const [log, angle] = [Math.log(Math.hypot(1 - u[0], u[1])), Math.atan2(-u[1], 1 - u[0])];
    return times(half, over([-2 * (log + u[0]), -2 * (angle + u[1])], times(u, u)));
  }
  var minus = ([a, b], [c, d]) => [a - c, b - d];
  var times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
  var over = ([a, b], [c, d]) => {
    const size = c * c + d * d;
    return [(a * c + b * d) / size, (b * c - a * d) / size];
  };
  function judged(statistic, values, publicN, worldsOfQuantity, prior, labels2 = {}) {
    const parts = statistic.components.map((name, position) => ({ name, value: Number(values[position]) }));
    const coefficients = (quantity2) => parts.map(({ name }) => toNumber(parseRational(quantity2.coefficients[name] ?? "0")));
    const estimateOf = (own, quantity2, n2) => own.reduce((sum, one, i) => sum + one * parts[i].value, 0) + (n2 === null ? 0 : toNumber(parseRational(quantity2.public_n_coefficient ?? "0")) * n2);
    const ofN = statistic.quantities.find(({ name }) => name === "n");
    const share3 = statistic.partition_total ? 1 / Number(statistic.partition_total) : 0;
    const nMap = publicN !== null ? parts.map(() => 0) : ofN ? coefficients(ofN) : parts.map(() => share3);
    const n = publicN ?? estimateOf(nMap, { public_n_coefficient: "0" }, null);
    const scale2 = toNumber(parseRational(statistic.scale));
    const others2 = statistic.quantities.filter(({ name }) => name !== "n");
    const tails = others2.map((quantity2, place) => {
      const own = coefficients(quantity2);
      const components = own.map((one, i) => ({ own: one, ofN: nMap[i] }));
      return tailOf(worldsOfQuantity(place), components, scale2, estimateOf(own, quantity2, publicN), n);
    });
    const number2 = tails.length + (publicN === null ? 1 : 0);
    const isSaid = tails.map((tail) => tail * number2 < THRESHOLD);
    const named = (calling) => others2.map(({ name, category }) => category ? `${name}[${calling(category)}]` : name);
    const called = named((category) => Object.hasOwn(labels2, category) ? labels2[category] : category);
    return { quantities: named((category) => category), tails, isSaid, lines: linesOf(called, tails, isSaid, prior) };
  }
  function linesOf(called, tails, isSaid, prior) {
    const names = called.filter((_, i) => isSaid[i]);
    if (names.length === 0) return [];
    const shown2 = names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");
    const told = prior.length > LONGEST_NAME ? `${prior.slice(0, LONGEST_NAME)}...` : prior;
    const least = Math.min(...tails.filter((_, i) => isSaid[i]));
    const chance2 = least < 1e-300 ? "below 1e-300" : least.toPrecision(2);
    return [
      `conflict: the prior of the parameters, ${told}, and the released ${shown2} disagree: under that prior the chance of values as far out is ${chance2} where it is least; the intervals rest on both, and one of the two is wrong`
    ];
  }
  function evenly(nCells, most) {
    const count2 = Math.min(nCells, most);
    const places = Array.from({ length: count2 }, (_, i) => count2 === 1 ? 0 : Math.floor(i * (nCells - 1) / (count2 - 1)));
    return [...new Set(places)];
  }
  function together(named, prior, compared, nCells) {
    const first = { alternative: "", logBayesFactor: 0 };
    const best = named.reduce((most, one) => one.logBayesFactor > most.logBayesFactor ? one : most, named[0] ?? first);
    const isAgainst = best.logBayesFactor > Math.log(1 / THRESHOLD);
    const cells = compared < nCells ? `${compared} of ${nCells}` : `${compared}`;
    const times3 = `1e${(best.logBayesFactor / Math.LN10).toFixed(0)}`;
    const told = prior.length > LONGEST_NAME ? `${prior.slice(0, LONGEST_NAME)}...` : prior;
    const line2 = `conflict: the prior of the parameters, ${told}, and ${cells} cells together disagree: what was released is about ${times3} times as probable under ${best.alternative} as under this one, though no cell alone may tell; the intervals rest on it where noise hides cells`;
    return { ...best, compared, isAgainst, lines: isAgainst ? [line2] : [] };
  }

  // src/line.js
  var NODES3 = 16;
  var LEFT_OUT3 = 28;
  var TOLERANCE3 = 1e-8;
  var MOST_PANELS = 3e3;
  var NEGLIGIBLE3 = 1e-4;
  var LEAST_WITHIN = 1e-6;
  var LONGEST_OF_TAIL = 2;
  var LINES2 = {
    probability: {
      value: (t) => 1 / (1 + Math.exp(-t)),
      position: (value) => Math.log(value) - Math.log1p(-value),
      logSlope: (t) => -Math.abs(t) - 2 * Math.log1p(Math.exp(-Math.abs(t))),
      contains: (value) => value > 0 && value < 1,
      ends: [0, 1],
      growth: 0
    },
    positive: {
      value: Math.exp,
      position: Math.log,
      logSlope: (t) => t,
      contains: (value) => value > 0 && value < Infinity,
      ends: [0, Infinity],
      growth: 1
    },
    real: {
      value: (t) => t,
      position: (value) => value,
      logSlope: () => 0,
      contains: Number.isFinite,
      ends: [-Infinity, Infinity],
      growth: 0
    }
  };
  var LineDistribution = class _LineDistribution {
    constructor({ line: line2, log, top, panels, ends: ends2 }) {
      this.line = line2;
      this.log = log;
      this.top = top;
      this.panels = panels;
      this.ends = ends2;
      this.total = panels.reduce((sum, one) => sum + one.mass, 0);
      this.logMass = top + Math.log(this.total);
      [this.mean, this.sd] = [Infinity, Infinity];
    }
    /**
     * @param {object} line One of `LINES`.
     * @param {(t: number) => number} log Log density along the line, with respect to t; any constant.
     * @param {{at: number, width: number}[]} starts Near each of its modes, and about how wide that is.
     * @param {number} farthest Up to where an upper tail that has fallen may rise again.
     */
    static of(line2, log, starts, farthest = -Infinity) {
      const peaks = apart(starts.map((start2) => peak(log, start2)));
      const top = Math.max(...peaks.map((one) => one.top));
      if (!Number.isFinite(top)) {
        throw new ReleaseError("resolution", "prior and released values are too far apart to be resolved");
      }
      const high = peaks[peaks.length - 1];
      const from = reach(log, peaks[0], -1, top, 0);
      const density = reach(log, high, 1, top, 0);
      const moments2 = [1, 2].map((power) => line2.growth ? reach(log, high, 1, top, power) : density);
      let to = Math.max(density, ...moments2.filter(Number.isFinite));
      for (let t = to + 1; t <= farthest; t += 1) if (log(t) + 2 * (t - high.at) >= top - LEFT_OUT3) to = t + 1;
      const breaks = /* @__PURE__ */ new Set([from, to]);
      for (let t = density + LONGEST_OF_TAIL; t < Math.min(to, farthest); t += LONGEST_OF_TAIL) breaks.add(t);
      for (const { at, left, right } of peaks) {
        for (const t of [at - 1.6 * left, at, at + 1.6 * right]) if (t > from && t < to) breaks.add(t);
      }
      const panels = resolve(log, [...breaks].sort((a, b) => a - b), top);
      const found = new _LineDistribution({ line: line2, log, top, panels, ends: line2.ends });
      found.setMoments(moments2[0] < Infinity, moments2[1] < Infinity);
      return found;
    }
    setMoments(hasMean, hasSd) {
      if (hasMean) this.mean = this.average((value) => value);
      if (hasSd) this.sd = Math.sqrt(this.average((value) => (value - this.mean) ** 2));
    }
    /** This distribution given that the parameter lies within limits; itself where next to nothing lies outside. */
    within([low, high]) {
      const { line: line2, log, panels } = this;
      const inside2 = this.below(high) - this.below(low);
      if (this.below(low) <= NEGLIGIBLE3 && 1 - this.below(high) <= NEGLIGIBLE3) return this;
      if (!(inside2 > LEAST_WITHIN)) {
        throw new ReleaseError("resolution", "prior and released values contradict what records within the bounds can have");
      }
      const last = panels[panels.length - 1];
      const start2 = line2.contains(low) ? Math.max(line2.position(low), panels[0].start) : panels[0].start;
      let end = last.start + last.length;
      const breaks = [...panels.map((one) => one.start), end];
      if (line2.contains(high)) {
        const limit = line2.position(high);
        if (this.sd === Infinity) for (; end < limit; end += LONGEST_OF_TAIL) breaks.push(end);
        end = this.sd === Infinity ? limit : Math.min(limit, end);
      }
      const kept2 = [start2, ...breaks.filter((t) => t > start2 && t < end), end].sort((a, b) => a - b);
      const top = Math.max(...kept2.map(log), this.top + Math.log(LEAST_WITHIN));
      const found = new _LineDistribution({
        line: line2,
        log,
        top,
        panels: resolve(log, [...new Set(kept2)], top),
        ends: [Math.max(low, line2.ends[0]), Math.min(high, line2.ends[1])]
      });
      const isClosed = line2.contains(high);
      found.setMoments(isClosed || this.mean < Infinity, isClosed || this.sd < Infinity);
      return found;
    }
    /** The average of a function of the parameter. */
    average(of2) {
      let sum = 0;
      const { nodes, weights } = gauss(NODES3);
      for (const { start: start2, length, values } of this.panels) {
        for (let i = 0; i < NODES3; i += 1) {
          if (values[i] > 0) {
            const value = this.line.value(start2 + length * (nodes[i] + 1) / 2);
            sum += length * weights[i] * values[i] / this.total * of2(value);
          }
        }
      }
      return sum;
    }
    /** The probability below a value. */
    below(value) {
      if (!this.line.contains(value)) return value <= 0 || value === -Infinity ? 0 : 1;
      const t = this.line.position(value);
      let sum = 0;
      for (const panel of this.panels) {
        if (t >= panel.start + panel.length) sum += panel.mass;
        else {
          if (t > panel.start) sum += panel.length * expansionIntegral(panel.expansion, relative(panel, t));
          break;
        }
      }
      return Math.min(Math.max(sum / this.total, 0), 1);
    }
    /** The value below which a share lies. */
    quantile(share3) {
      let wanted = share3 * this.total;
      const last = this.panels[this.panels.length - 1];
      const panel = this.panels.find((one) => {
        if (wanted <= one.mass || one === last) return true;
        wanted -= one.mass;
        return false;
      });
      let [low, high] = [-1, 1];
      for (let step = 0; step < 60; step += 1) {
        const middle = (low + high) / 2;
        if (panel.length * expansionIntegral(panel.expansion, middle) < wanted) low = middle;
        else high = middle;
      }
      return this.line.value(panel.start + panel.length * (low + 1) / 2);
    }
    /** The density at a value. */
    density(value) {
      if (!this.line.contains(value)) return 0;
      const t = this.line.position(value);
      const panel = this.panels.find((one) => t >= one.start && t <= one.start + one.length);
      if (!panel) return 0;
      const along = Math.max(expansionAt(panel.expansion, relative(panel, t)), 0);
      return along / this.total * Math.exp(-this.line.logSlope(t));
    }
  };
  function relative(panel, t) {
    return 2 * (t - panel.start) / panel.length - 1;
  }
  function peak(log, { at: start2, width: width2 }) {
    let [a, centre, b] = [start2, start2, start2];
    let top = log(centre);
    if (top === -Infinity) return { at: centre, top, left: width2, right: width2 };
    const better = (t) => {
      const value = log(t);
      if (!(value > top)) return false;
      [centre, top] = [t, value];
      return true;
    };
    for (let stride = width2, n = 0; n < 200; n += 1, stride *= 2) {
      b = centre + stride;
      const before2 = centre;
      if (!better(b)) break;
      a = before2;
    }
    if (a === centre) {
      for (let stride = width2, n = 0; n < 200; n += 1, stride *= 2) {
        a = centre - stride;
        const before2 = centre;
        if (!better(a)) break;
        b = before2;
      }
    }
    for (let n = 0; n < 100; n += 1) {
      if (top - log(a) < 0.5 && top - log(b) < 0.5) break;
      if (b - a < 1e-13 * (1 + Math.abs(centre))) break;
      const right = b - centre > centre - a;
      const inner = right ? centre + 0.382 * (b - centre) : centre - 0.382 * (centre - a);
      const before2 = centre;
      if (better(inner)) {
        if (right) a = before2;
        else b = before2;
      } else if (right) b = inner;
      else a = inner;
    }
    const side = (direction) => {
      let distance = Math.max(direction * ((direction > 0 ? b : a) - centre), 1e-12 * (1 + Math.abs(centre)));
      for (let n = 0; n < 200 && top - log(centre + direction * distance) < 2; n += 1) distance *= 1.7;
      for (let n = 0; n < 200 && top - log(centre + direction * distance) > 5; n += 1) distance *= 0.7;
      return distance;
    };
    return { at: centre, top, left: side(-1), right: side(1) };
  }
  function apart(peaks) {
    const sorted = peaks.sort((a, b) => a.at - b.at);
    return sorted.filter((one, i) => i === 0 || one.at - sorted[i - 1].at > one.left / 2);
  }
  function reach(log, { at, left, right }, direction, top, power) {
    let distance = 3 * (direction > 0 ? right : left);
    let before2 = log(at + direction * distance);
    for (let n = 0; n < 400; n += 1) {
      const here = log(at + direction * distance);
      if (here + power * distance < top - LEFT_OUT3 || here === -Infinity) return at + direction * distance;
      const step = distance * 0.4;
      const slope2 = n ? (here - before2) / (distance - distance / 1.4) : -Infinity;
      if (power && here < top - LEFT_OUT3 && slope2 + power > -1e-6) return Infinity;
      before2 = here;
      distance += step;
    }
    return power ? Infinity : at + direction * distance;
  }
  function resolve(log, breaks, top) {
    let panels = breaks.slice(1).map((end, i) => panelOf(log, breaks[i], end - breaks[i], top));
    for (let round = 0; round < 60; round += 1) {
      const mass = panels.reduce((sum, one) => sum + one.mass, 0);
      const isFine = (one) => one.error <= TOLERANCE3 * mass;
      if (panels.every(isFine)) return panels;
      if (panels.length > MOST_PANELS) break;
      panels = panels.flatMap((one) => {
        if (isFine(one)) return [one];
        const half = one.length / 2;
        return [panelOf(log, one.start, half, top), panelOf(log, one.start + half, half, top)];
      });
    }
    throw new ReleaseError("resolution", "the posterior could not be resolved to eight digits");
  }
  function panelOf(log, start2, length, top) {
    const { nodes, weights } = gauss(NODES3);
    const values = Float64Array.from(nodes, (y) => Math.exp(log(start2 + length * (y + 1) / 2) - top));
    const expansion = legendre(values);
    let mass = 0;
    for (let i = 0; i < NODES3; i += 1) mass += weights[i] * values[i];
    const error = length * (Math.abs(expansion[NODES3 - 1]) + Math.abs(expansion[NODES3 - 2]));
    return { start: start2, length, values, expansion, mass: length * mass, error };
  }

  // src/priors.js
  var LOG_TWO_PI2 = Math.log(2 * Math.PI);
  var KINDS = {
    Beta: {
      names: ["concentration1", "concentration0"],
      line: "probability",
      of(a, b) {
        const constant = -logBeta(a, b);
        return {
          log: (t) => constant - a * softplus(-t) - b * softplus(t),
          start: { at: Math.log(a / b), width: Math.sqrt(1 / a + 1 / b) }
        };
      }
    },
    Gamma: {
      names: ["concentration", "rate"],
      line: "positive",
      of(a, rate2) {
        const constant = a * Math.log(rate2) - logGamma(a);
        return {
          log: (t) => constant + a * t - rate2 * Math.exp(t),
          start: { at: Math.log(a / rate2), width: Math.sqrt(1 / a) }
        };
      }
    },
    InverseGamma: {
      names: ["concentration", "scale"],
      line: "positive",
      of(a, scale2) {
        const constant = a * Math.log(scale2) - logGamma(a);
        return {
          log: (t) => constant - a * t - scale2 * Math.exp(-t),
          start: { at: Math.log(scale2 / a), width: Math.sqrt(1 / a) }
        };
      }
    },
    Normal: {
      names: ["loc", "scale"],
      line: "real",
      ofAnySign: ["loc"],
      of(loc, scale2) {
        const constant = -Math.log(scale2) - LOG_TWO_PI2 / 2;
        return {
          log: (t) => constant - 0.5 * ((t - loc) / scale2) ** 2,
          start: { at: loc, width: scale2 }
        };
      }
    },
    NormalInverseGamma: {
      names: ["loc", "precision", "concentration", "scale"],
      ofAnySign: ["loc"],
      of: () => ({})
    }
  };
  function softplus(t) {
    return Math.max(t, 0) + Math.log1p(Math.exp(-Math.abs(t)));
  }
  var LIMITS2 = {
    concentration: [1e-3, 1e9],
    concentration1: [1e-3, 1e9],
    concentration0: [1e-3, 1e9],
    precision: [1e-40, 1e40],
    rate: [1e-40, 1e40],
    scale: [1e-40, 1e40]
  };
  function parsePrior(text, kind) {
    const call = parseCall(text);
    if (call.name === "Mixture") {
      if (call.keywords.length || call.args.length === 0 || call.args.length % 2) {
        throw refused3(text, "Mixture takes weights and priors in turn");
      }
      const components = [];
      for (let i = 0; i < call.args.length; i += 2) {
        const weight = call.args[i];
        if (typeof weight !== "number" || !(weight > 0) || !Number.isFinite(weight)) {
          throw refused3(text, "every weight must be a finite number above 0");
        }
        if (typeof call.args[i + 1] !== "object") throw refused3(text, "Mixture takes weights and priors in turn");
        components.push({ weight, ...component(call.args[i + 1], kind, text) });
      }
      return mixture(components);
    }
    if (SPREAD[kind] === call.name) return spread(call, kind, text);
    if (kind === "NormalInverseGamma" && call.name === "ScaleMixture") return scales(call, text);
    return mixture([{ weight: 1, ...component(call, kind, text) }]);
  }
  var SPREAD = { Gamma: "SpreadGamma", InverseGamma: "SpreadInverseGamma" };
  function spread(call, kind, text) {
    const given = [...call.args, ...call.keywords.map(([name, value]) => name === "upper" ? value : null)];
    const [upper] = given;
    if (given.length !== 1 || typeof upper !== "number" || !(upper >= 1e-30 && upper <= 1e30)) {
      throw refused3(text, `${call.name} takes exactly (upper), a number in 1e-30..1e30`);
    }
    const variances = Array.from({ length: 10 }, (_, index) => 10 ** (-0.6 * (9 - index)));
    const roots = variances.reduce((all, variance) => all + Math.sqrt(variance), 0);
    const { line: line2, of: of2 } = KINDS[kind];
    const components = variances.map((variance) => {
      const numbers = [3, 2 * variance * upper];
      return { weight: 0.25 / 10 + 0.75 * Math.sqrt(variance) / roots, text: "", numbers, line: line2, ...of2(...numbers) };
    });
    const farthest = line2 === "positive" && kind === "Gamma" ? Math.log(60 / components[0].numbers[1]) : -Infinity;
    return { ...mixture(components), text: `${call.name}(${upper})`, farthest };
  }
  function scales(call, text) {
    const names = ["lower", "upper"];
    const given = new Map([...call.args.map((value, i) => [names[i], value]), ...call.keywords]);
    const [lower, upper] = names.map((name) => given.get(name));
    const isNumber2 = [lower, upper].every((value) => typeof value === "number" && Math.abs(value) <= 1e150);
    if (given.size !== 2 || call.args.length + call.keywords.length !== 2 || !isNumber2 || !(lower < upper)) {
      throw refused3(text, "ScaleMixture takes exactly (lower, upper), two numbers in order");
    }
    const half = upper / 2 - lower / 2;
    const variances = Array.from({ length: 14 }, (_, index) => 10 ** (-0.6 * (13 - index)));
    const roots = variances.reduce((all, variance) => all + Math.sqrt(variance), 0);
    const components = variances.map((variance) => ({
      weight: 0.25 / 14 + 0.75 * Math.sqrt(variance) / roots,
      text: "",
      numbers: [lower / 2 + upper / 2, variance / 4, 3, 2 * variance * half * half]
    }));
    return { ...mixture(components), text: `ScaleMixture(${lower}, ${upper})` };
  }
  function mixture(components) {
    const sum = components.reduce((all, { weight }) => all + weight, 0);
    const parts = components.map((one) => ({ ...one, logShare: Math.log(one.weight / sum) }));
    const text = parts.length === 1 ? parts[0].text : `Mixture(${parts.map((one) => `${one.weight}, ${one.text}`).join(", ")})`;
    const log = (t) => {
      if (parts.length === 1) return parts[0].log(t);
      const terms = parts.map((one) => one.logShare + one.log(t));
      const top = Math.max(...terms);
      return top === -Infinity ? top : top + Math.log(terms.reduce((all, term) => all + Math.exp(term - top), 0));
    };
    return { text, line: parts[0].line, components: parts, log };
  }
  function component(call, kind, text) {
    if (call.name !== kind) throw refused3(text, `this family takes ${kind}, or a Mixture of such`);
    const { names, ofAnySign = [], line: line2, of: of2 } = KINDS[kind];
    const given = new Map(call.args.map((value, i) => [names[i], value]));
    for (const [name, value] of call.keywords) {
      if (given.has(name)) throw refused3(text, "every number is given once");
      given.set(name, value);
    }
    if (given.size !== names.length || !names.every((name) => given.has(name))) {
      throw refused3(text, `${kind} takes exactly (${names.join(", ")})`);
    }
    const numbers = names.map((name) => {
      const value = given.get(name);
      if (typeof value !== "number" || !Number.isFinite(value)) throw refused3(text, `${name} must be a number`);
      const [low, high] = LIMITS2[name] ?? [-Infinity, Infinity];
      if (!ofAnySign.includes(name) && (value < low || value > high)) {
        throw refused3(text, `${name} must lie in ${low}..${high}`);
      }
      return value;
    });
    return { text: `${kind}(${numbers.map(String).join(", ")})`, numbers, line: line2, ...of2(...numbers) };
  }
  function movedPriors({ components }, kind) {
    if (components.length > 1) return [];
    const [first, second] = components[0].numbers;
    const factors = [0.25, 0.5, 2, 4];
    const pairs = {
      Gamma: () => factors.map((factor) => [first, second * factor]),
      InverseGamma: () => factors.map((factor) => [first, second * factor]),
      Normal: () => [-2, -1, 1, 2].map((sds) => [first + sds * second, second]),
      Beta: () => factors.map((factor) => {
        const odds = first / second * factor;
        return [odds / (1 + odds), 1 / (1 + odds)].map((share3) => Number(((first + second) * share3).toPrecision(4)));
      })
    }[kind];
    const [low, high] = LIMITS2.concentration;
    const isKept = (numbers) => kind !== "Beta" || numbers.every((value) => value >= low && value <= high);
    return (pairs?.() ?? []).filter(isKept).map((numbers) => parsePrior(`${kind}(${numbers.join(", ")})`, kind));
  }
  function conjugate(kind, numbers) {
    return KINDS[kind].of(...numbers);
  }
  function parseDirichlet(text, size) {
    const call = parseCall(text);
    if (call.name !== "Dirichlet" || call.keywords.length || call.args.length === 0) {
      throw refused3(text, "this family takes Dirichlet with one number, or one for each category");
    }
    const numbers = call.args;
    if (!numbers.every((value) => typeof value === "number" && value >= 1e-6 && value <= 1e9)) {
      throw refused3(text, "every concentration must lie in 1e-6..1e9");
    }
    if (numbers.length !== 1 && numbers.length !== size) throw refused3(text, `there are ${size} categories`);
    const concentrations = numbers.length === 1 ? new Array(size).fill(numbers[0]) : numbers;
    return { text: `Dirichlet(${numbers.map(String).join(", ")})`, concentrations };
  }
  function parseNPrior(given) {
    const text = String(given).trim();
    const whole2 = (value) => Number.isSafeInteger(value) && value >= 0 && value <= 1e15;
    if (/^\d{1,16}$/.test(text) && whole2(Number(text))) return fixed(Number(text));
    const rule = "a prior of N is a whole number, Uniform(lower, upper) or Reciprocal(max)";
    const { name, args, keywords } = parseCall(text);
    const names = { Reciprocal: ["max"], Uniform: ["lower", "upper"] }[name];
    if (!names) throw refused3(text, rule);
    const byName = new Map([...args.map((value, i) => [names[i], value]), ...keywords]);
    const values = names.map((key) => byName.get(key));
    if (byName.size !== names.length || args.length + keywords.length !== names.length || !values.every(whole2)) {
      throw refused3(text, `${rule}, of whole numbers up to 10^15`);
    }
    if (name === "Reciprocal") return reciprocal(values[0]);
    if (values[0] > values[1]) throw refused3(text, "lower must be at most upper");
    const logSize = Math.log(values[1] - values[0] + 1);
    return { text: `Uniform(${values[0]}, ${values[1]})`, low: values[0], high: values[1], log: () => -logSize };
  }
  function fixed(n) {
    return { text: String(n), low: n, high: n, log: () => 0 };
  }
  function reciprocal(max) {
    const logTotal = Math.log(harmonic(max + 1));
    return { text: `Reciprocal(${max})`, low: 0, high: max, log: (n) => -Math.log1p(n) - logTotal };
  }
  function parseCall(text) {
    if (typeof text !== "string" || text.length > 2e4) throw refused3("", "a prior is a text such as Beta(1, 9)");
    const tokens = text.match(/[A-Za-z_][A-Za-z_0-9]*|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[(),=]|\S/g) ?? [];
    let at = 0;
    const wrong = () => refused3(text, "write a name with its numbers, as in Beta(1, 9)");
    const take = (expected) => {
      if (tokens[at] !== expected) throw wrong();
      at += 1;
    };
    const argument = (depth) => {
      const token = tokens[at] ?? "";
      if (/^[A-Za-z_]/.test(token)) return call(depth + 1);
      const value = Number(token);
      if (!/^[-+.\d]/.test(token) || Number.isNaN(value)) throw wrong();
      at += 1;
      return value;
    };
    const call = (depth) => {
      const name = tokens[at] ?? "";
      if (depth > 2 || !/^[A-Za-z_]/.test(name)) throw wrong();
      at += 1;
      take("(");
      const [args, keywords] = [[], []];
      while (tokens[at] !== ")") {
        if (tokens[at + 1] === "=") {
          const key = tokens[at];
          at += 2;
          keywords.push([key, argument(depth)]);
        } else if (keywords.length) throw wrong();
        else args.push(argument(depth));
        if (tokens[at] === ",") at += 1;
        else if (tokens[at] !== ")") throw wrong();
      }
      take(")");
      return { name, args, keywords };
    };
    const found = call(0);
    if (at !== tokens.length) throw wrong();
    return found;
  }
  function refused3(text, rule) {
    return new ReleaseError("prior", `the prior ${shown(text)}: ${rule}`);
  }

  // src/posterior.js
  var NOISE_AWARE = "noise-aware";
  var PLUG_IN = "plug-in";
  var BY_EVIDENCE = "by-evidence";
  var LEAST_SHARE = 1e-11;
  function oneSumPosterior(statistic, values, release, options) {
    const family = ONE_SUM[statistic.family];
    const known = knownOf(statistic);
    const prior = parsePrior(options.prior ?? family.defaultPrior(known), family.prior);
    const line2 = LINES2[prior.line];
    const nPrior = nPriorOf(statistic, release, options);
    const { noisy, exact, updated, starts, likelihoodOf: likelihoodOf2 } = termsOf(statistic, values, release, prior, options.kept);
    const plain = options.method === PLUG_IN ? plugIn(line2, prior, updated, starts) : noiseAware(line2, prior, starts, nPrior, likelihoodOf2);
    const clipping = clippingOf(family, known, plain, options, shown(statistic.name));
    const distribution = clipping === "modelled" ? withClipping(line2, prior, { exact, starts }, known.upper, shown(statistic.name), () => options.kept.of(`clipped ${nPrior.text}`, () => new TabulatedLikelihood(new ClippedLikelihood(family.clippedRecord(known), noisy, nPrior), starts[0].width))) : restricted(family, known, plain, { method: options.method, clipping });
    return new Posterior({
      parameters: [family.parameter],
      prior: prior.text,
      nPrior: nPrior?.text ?? null,
      method: options.method,
      clipping,
      defaultInterval: family.interval ?? CENTRAL,
      marginals: [{ line: line2, distribution, prior }],
      judge: () => conflictOf(statistic, values, release, { line: line2, prior, clipping })
    });
  }
  function termsOf(statistic, values, release, prior, kept2) {
    const family = ONE_SUM[statistic.family];
    const known = knownOf(statistic);
    const noisy = noisySums(statistic, values, release.n);
    const exact = projected(statistic, noisy, known, release.n);
    const updated = prior.components.map(({ numbers }) => conjugate(family.prior, family.update(numbers, exact.n, exact.total, known)));
    const starts = updated.map((one) => one.start);
    const likelihoodOf2 = (ofN) => kept2.of(`${ofN.low} ${ofN.text}`, () => new TabulatedLikelihood(new Likelihood(family.total(known, noisy.step), noisy, ofN), starts[0].width));
    return { noisy, exact, updated, starts, likelihoodOf: likelihoodOf2 };
  }
  function evidenceOf(statistic, values, release, priors, nPrior, kept2) {
    return priors.map(
      (prior) => kept2.of(`evidence ${nPrior.text} ${prior.text}`, () => {
        mayPause();
        const { starts, likelihoodOf: likelihoodOf2 } = termsOf(statistic, values, release, prior, kept2);
        const { logMass } = noiseAware(LINES2[prior.line], prior, starts, nPrior, likelihoodOf2);
        kept2.finish();
        stepDone();
        return { logMass };
      }).logMass
    );
  }
  function oneSumTogether(statistic, valuesOf, nCells, release, options, keptOf) {
    const family = ONE_SUM[statistic.family];
    const known = knownOf(statistic);
    const usual = parsePrior(family.defaultPrior(known), family.prior);
    const stated = options.prior === void 0 ? usual : parsePrior(options.prior, family.prior);
    if (stated.text === usual.text) return together([], stated.text, 0, nCells);
    const moved2 = movedPriors(stated, family.prior);
    const others2 = [usual, ...moved2];
    const nPrior = nPriorOf(statistic, release, { ...options, method: NOISE_AWARE });
    const cells = evenly(nCells, options.most ?? (moved2.length === 0 ? MOST2 : MOST_MOVED));
    const sums = others2.map(() => 0);
    for (const cell of cells) {
      const [first, ...further] = evidenceOf(statistic, valuesOf(cell), release, [stated, ...others2], nPrior, keptOf(cell));
      further.forEach((log, i) => sums[i] += log - first);
    }
    let within2 = 0;
    if (family.limits) {
      const starts = stated.components.map(({ start: start2 }) => start2);
      const prior = LineDistribution.of(LINES2[stated.line], stated.log, starts, stated.farthest);
      const [low, high] = family.limits(known);
      within2 = Math.log(Math.max(prior.below(high) - prior.below(low), Number.MIN_VALUE));
    }
    const named = others2.map(({ text }, i) => ({
      alternative: i === 0 ? `the default prior, ${text},` : text,
      logBayesFactor: sums[i] + cells.length * within2 - Math.log(others2.length)
    }));
    return together(named, stated.text, cells.length, nCells);
  }
  var of = (mean, variance, third) => ({ mean, variance, third });
  var trials = (count2) => (p) => of(count2 * p, count2 * p * (1 - p), count2 * p * (1 - p) * (1 - 2 * p));
  var failures2 = (successes2) => (p) => {
    const mean = successes2 * (1 - p) / p;
    return of(mean, mean / p, mean * (2 - p) / p ** 2);
  };
  var gamma = (shape) => (scale2) => of(shape * scale2, shape * scale2 ** 2, 2 * shape * scale2 ** 3);
  var waiting = (shape) => (rate2) => gamma(shape)(1 / rate2);
  var RECORDS = {
    bernoulli: () => trials(1),
    binomial: (known) => trials(known.upper),
    poisson: () => (rate2) => of(rate2, rate2, rate2),
    geometric: () => failures2(1),
    negative_binomial: (known) => failures2(known.constants.successes),
    exponential: () => waiting(1),
    gamma: (known) => waiting(known.constants.shape),
    weibull: () => waiting(1),
    pareto: () => waiting(1),
    laplace: () => gamma(1),
    normal_known_mean: () => (variance) => gamma(0.5)(2 * variance),
    normal_known_variance: (known) => (mean) => of(mean, known.constants.variance, 0)
  };
  function conflictOf(statistic, values, release, { line: line2, prior, clipping }) {
    if (clipping === "modelled") return null;
    const record = RECORDS[statistic.family](knownOf(statistic));
    const starts = prior.components.map(({ start: start2 }) => start2);
    const worlds = worldsOf(LineDistribution.of(line2, prior.log, starts));
    const parts = worlds.map(({ value, weight }) => ({ ...record(value), weight }));
    const publicN = statistic.design === "minimal" ? release.n : null;
    return judged(statistic, values, publicN, () => parts, prior.text);
  }
  function plugIn(line2, prior, updated, starts) {
    const [first] = prior.components;
    const log = prior.components.length === 1 ? updated[0].log : (t) => prior.log(t) + updated[0].log(t) - first.log(t);
    return LineDistribution.of(line2, log, starts);
  }
  function clippingOf(family, known, distribution, { method, clipping = BY_EVIDENCE }, name) {
    if (![BY_EVIDENCE, "modelled", "ignored"].includes(clipping)) {
      throw new ReleaseError("usage", `clipping is ${BY_EVIDENCE}, modelled or ignored`);
    }
    if (family.isBounded) return null;
    if (clipping === "modelled" && method !== PLUG_IN && family.refusesClipping) {
      throw refusal(name, "clipped records are not modelled by this reader");
    }
    if (!family.clippingShift || clipping !== "modelled" || method === PLUG_IN) return "ignored";
    const shift = distribution.average((value) => Math.abs(family.clippingShift(value, known)));
    return shift <= NEGLIGIBLE * distribution.sd ? "negligible" : "modelled";
  }
  function restricted(family, known, distribution, { method, clipping }) {
    const isWhole = method === PLUG_IN || clipping === "negligible" || !family.limits;
    return isWhole ? distribution : distribution.within(family.limits(known));
  }
  function refusal(name, why) {
    return new ReleaseError("clipping", `${name}: ${why}: read a published posterior, compute it in Python, or say clipping: "ignored"`);
  }
  function withClipping(line2, prior, { exact, starts }, upper, name, likelihoodOf2) {
    const why = (text) => refusal(name, `clipped records matter here, and ${text}`);
    if (upper > LARGEST_BOUND) throw why(`this reader does not model them where the bound is above ${LARGEST_BOUND}`);
    const likelihood = likelihoodOf2();
    const near = [likelihood.likelihood.start(exact), ...starts.length > 1 ? starts : []];
    const distribution = LineDistribution.of(line2, (t) => prior.log(t) + likelihood.at(t), near);
    if (!likelihood.likelihood.isResolved(line2.position(distribution.quantile(0.5)))) {
      throw why("prior and released values are too far apart for this reader");
    }
    return distribution;
  }
  function noiseAware(line2, prior, starts, nPrior, likelihoodOf2) {
    const of2 = (likelihood2) => LineDistribution.of(line2, (t) => prior.log(t) + likelihood2.at(t), starts, prior.farthest);
    const likelihood = likelihoodOf2(nPrior);
    const distribution = of2(likelihood);
    const ofNone = likelihood.ofNone - distribution.logMass;
    if (Number.isFinite(distribution.sd) || ofNone === -Infinity || ofNone > Math.log(LEAST_SHARE)) return distribution;
    return of2(likelihoodOf2({ ...nPrior, low: 1 }));
  }
  function projected({ family, design }, { values: [first, second], reach: reach2, step }, { lower }, publicN) {
    if (family === "bernoulli" && design !== "minimal") {
      const [total, rest] = [Math.max(first, 0), Math.max(second, 0)];
      return { n: total + rest, total };
    }
    const n = design === "minimal" ? publicN : Math.max((first + second) / reach2, 0);
    const most = Math.max(reach2 * n, 0);
    const amount = Math.min(Math.max(first, 0), most);
    return { n, total: lower * n + step * amount };
  }
  function nPriorOf(statistic, release, { nPrior, method }) {
    const name = shown(statistic.name);
    if (method === PLUG_IN) {
      if (nPrior !== void 0) throw new ReleaseError("usage", `${name}: plug-in takes the noisy N for exact: leave nPrior out`);
      return null;
    }
    if (statistic.design === "minimal") {
      if (nPrior !== void 0) throw new ReleaseError("usage", `${name}: its N is public: leave nPrior out`);
      return fixed(release.n);
    }
    return nPrior === void 0 ? reciprocal(release.maxTotalRows) : parseNPrior(nPrior);
  }
  var Posterior = class {
    constructor({ parameters, prior, nPrior, method, clipping, defaultInterval, marginals, judge }) {
      this.parameters = parameters;
      this.prior = prior;
      this.nPrior = nPrior;
      this.method = method;
      this.clipping = clipping;
      this.defaultInterval = defaultInterval;
      this.marginals = marginals;
      this.judge = judge;
    }
    /**
     * Whether the prior of the parameters and what was released disagree, as Python judges it: tails by quantity, which
     * are conflicts, and what to say. Null where this reader does not judge; it never judges the prior of N.
     */
    get conflict() {
      this.found ??= { conflict: this.judge() };
      return this.found.conflict;
    }
    /** The mean; infinite where there is none. */
    mean(parameter) {
      return this.marginal(parameter).distribution.mean;
    }
    /** The standard deviation; infinite where there is none. */
    sd(parameter) {
      return this.marginal(parameter).distribution.sd;
    }
    /** The value below which a share p lies, 0 < p < 1. */
    quantile(p, parameter) {
      if (!(p > 0 && p < 1)) throw new ReleaseError("usage", "a share lies between 0 and 1");
      return this.marginal(parameter).distribution.quantile(p);
    }
    /** The ends of the interval of a mass, 0 < mass < 1: `central` or `highest-density`, by default `defaultInterval`. */
    interval(mass, parameter, kind = this.defaultInterval) {
      const { distribution } = this.marginal(parameter);
      return intervalOf((p) => distribution.quantile(p), mass, kind, distribution.ends);
    }
    /** The probability below a value. */
    probabilityBelow(value, parameter) {
      return this.marginal(parameter).distribution.below(value);
    }
    /** Densities at values. */
    density(parameter, xs) {
      const { distribution } = this.marginal(parameter);
      return Float64Array.from(xs, (x) => distribution.density(x));
    }
    /** The prior's densities at values. */
    priorDensity(parameter, xs) {
      const { line: line2, prior } = this.marginal(parameter);
      return Float64Array.from(xs, (x) => {
        if (!line2.contains(x)) return 0;
        const t = line2.position(x);
        return Math.exp(prior.log(t) - line2.logSlope(t));
      });
    }
    marginal(parameter) {
      const at = parameter === void 0 && this.parameters.length === 1 ? 0 : this.parameters.indexOf(parameter);
      if (at < 0) {
        const known = this.parameters.slice(0, 8).map(shown).join(", ");
        throw new ReleaseError("usage", `there is no parameter ${shown(parameter)}: there are ${known}`);
      }
      const found = this.marginals[at];
      if (!found.distribution) found.distribution = found.make();
      return found;
    }
  };

  // src/counts.js
  var WINDOW = 27;
  var LEAST_EDGE = 1e-11;
  var MOST_STEPS2 = 4e9;
  var [PRODUCTS_TOGETHER, STEPS_TOGETHER] = [2e6, 5e4];
  function countsPosterior(statistic, values, release, options) {
    const categories = statistic.parameters.categories;
    const counts = values.map(Number);
    const prior = parseDirichlet(options.prior ?? "Dirichlet(1)", categories.length);
    const nPrior = nPriorOf(statistic, release, options);
    const alpha = prior.concentrations;
    const sum = alpha.reduce((all, one) => all + one, 0);
    const marginalPrior = alpha.map((own) => conjugate("Beta", [own, sum - own]));
    const line2 = LINES2.probability;
    const worlds = (k) => worldsOf(LineDistribution.of(line2, marginalPrior[k].log, [marginalPrior[k].start])).map(({ value, weight }) => {
      const variance = value * (1 - value);
      return { mean: value, variance, third: variance * (1 - 2 * value), weight };
    });
    let makes;
    if (options.method === PLUG_IN) {
      const exact = statistic.design === "minimal" ? onSimplex(counts, release.n) : counts.map((one) => Math.max(one, 0));
      const total = exact.reduce((all, one) => all + one, 0);
      makes = alpha.map((own, k) => () => {
        const { log, start: start2 } = conjugate("Beta", [own + exact[k], sum - own + total - exact[k]]);
        return LineDistribution.of(line2, log, [start2]);
      });
    } else {
      const scale2 = toNumber(parseRational(statistic.scale));
      const given = { counts, scale: scale2, alpha, sum, nPrior, name: shown(statistic.name) };
      const kept2 = options.kept.of(`${nPrior.text} ${prior.text}`, () => ({
        rows: new Resumed(latentCounts(given)),
        likelihoods: /* @__PURE__ */ new Map()
      }));
      makes = alpha.map((own, k) => () => {
        const rows = kept2.rows.value;
        const likelihood = likelihoodOf(kept2.likelihoods, rows, k);
        const exact = Math.max(counts[k], 0);
        const rest = counts.reduce((all, one) => all + Math.max(one, 0), 0) - exact;
        const { start: start2 } = conjugate("Beta", [own + exact, sum - own + rest]);
        return LineDistribution.of(line2, (t) => marginalPrior[k].log(t) + likelihood.at(t), [start2]);
      });
    }
    return new Posterior({
      parameters: categories.map((category) => `probability[${category}]`),
      prior: prior.text,
      nPrior: nPrior?.text ?? null,
      method: options.method,
      clipping: null,
      defaultInterval: HIGHEST_DENSITY,
      marginals: makes.map((make, k) => ({ line: line2, prior: marginalPrior[k], make })),
      judge: () => judged(statistic, values, statistic.design === "minimal" ? release.n : null, worlds, prior.text, options.labels)
    });
  }
  function likelihoodOf(known, rows, k) {
    if (!known.has(k)) known.set(k, new TabulatedLikelihood(new CountLikelihood(rows, k), 1));
    return known.get(k);
  }
  function* latentCounts(given) {
    const { counts, scale: scale2, alpha, name } = given;
    for (let reach2 = WINDOW * scale2 + 8; ; reach2 *= 2) {
      const rows = counts.map((count2, k) => rowOf(count2, alpha[k], scale2, reach2));
      yield;
      const rest = yield* others(rows, name);
      const found = new LatentCounts({ ...given, rows, rest });
      if (yield* found.holdAll()) return found;
    }
  }
  function rowOf(count2, alpha, scale2, reach2) {
    const start2 = Math.max(0, Math.floor(count2 - reach2));
    const end = Math.max(Math.ceil(count2 + reach2), Math.ceil(reach2));
    const logs = new Float64Array(end - start2 + 1);
    for (let i = 0; i < logs.length; i += 1) {
      logs[i] = logRising(alpha, start2 + i) - Math.abs(count2 - start2 - i) / scale2;
    }
    return { start: start2, ...scaled(logs) };
  }
  var LatentCounts = class {
    constructor(given) {
      Object.assign(this, given);
    }
    /** Whether hardly any of the posterior lies at the ends of a window. */
    *holdAll() {
      for (const [k, row4] of this.rows.entries()) {
        const rest = this.rest[k];
        const last = row4.values.length - 1;
        const kink = Math.min(Math.max(Math.round(this.counts[k]) - row4.start, 0), last);
        const some = [0, kink, ...Array.from({ length: 16 }, (_, i) => Math.round((i + 1) * last / 16))];
        const weights = [];
        for (const i of some) {
          let all = 0;
          for (let m = 0; m < rest.values.length; m += 1) {
            all += rest.values[m] * Math.exp(this.logOfN(row4.start + i + rest.start + m));
            if (m % STEPS_TOGETHER === STEPS_TOGETHER - 1) yield;
          }
          weights.push(row4.values[i] * all);
          yield;
        }
        const most = Math.max(...weights);
        const first = row4.start === 0 ? 0 : weights[0];
        if (!(first <= LEAST_EDGE * most && weights[weights.length - 1] <= LEAST_EDGE * most)) return false;
      }
      return true;
    }
    /** Log of prior(N) N! / Gamma(sum of concentrations + N), relative to that of the noisy total. */
    logOfN(n) {
      if (n < this.nPrior.low || n > this.nPrior.high) return -Infinity;
      this.reference ??= logRising(this.sum, Math.max(this.counts.reduce((all, one) => all + Math.max(one, 0), 0), 0));
      return this.nPrior.log(n) - logRising(this.sum, n) + this.reference;
    }
  };
  function logRising(a, c) {
    if (a === 1 || c === 0) return 0;
    if (c < 1e6) return logGamma(a + c) - logGamma(c + 1) - logGamma(a);
    const x = a + c;
    const y = c + 1;
    return (x - 0.5) * Math.log1p((a - 1) / y) + (a - 1) * Math.log(y) - (a - 1) + (1 / x - 1 / y) / 12 - logGamma(a);
  }
  function scaled(logs) {
    let top = -Infinity;
    for (const one of logs) top = Math.max(top, one);
    return { values: logs.map((one) => Math.exp(one - top)) };
  }
  function* others(rows, name) {
    const one = { start: 0, values: Float64Array.of(1) };
    let steps2 = 0;
    function* joined2(a, b) {
      steps2 += a.values.length * b.values.length;
      if (steps2 > MOST_STEPS2) throw unresolved(name);
      return yield* convolved(a, b);
    }
    const before2 = [one];
    for (const row4 of rows.slice(0, -1)) before2.push(yield* joined2(before2[before2.length - 1], row4));
    const rest = new Array(rows.length);
    let after = one;
    for (let k = rows.length - 1; k >= 0; k -= 1) {
      rest[k] = yield* joined2(before2[k], after);
      if (k) after = yield* joined2(after, rows[k]);
    }
    return rest;
  }
  function* convolved(a, b) {
    const [long, short] = a.values.length > b.values.length ? [a, b] : [b, a];
    const values = new Float64Array(long.values.length + short.values.length - 1);
    const together2 = Math.ceil(PRODUCTS_TOGETHER / long.values.length);
    for (let i = 0; i < short.values.length; i += 1) {
      const weight = short.values[i];
      if (weight > 0) for (let j = 0; j < long.values.length; j += 1) values[i + j] += weight * long.values[j];
      if (i % together2 === together2 - 1) yield;
    }
    let top = 0;
    for (const value of values) top = Math.max(top, value);
    for (let i = 0; i < values.length; i += 1) values[i] /= top;
    return { start: a.start + b.start, values };
  }
  var CountLikelihood = class extends Likelihood {
    constructor(rows, k) {
      const { nPrior } = rows;
      const { start: start2, values } = rows.rest[k];
      const noise = { values: [rows.counts[k], start2 + highest(values)], scale: rows.scale, reach: 1 };
      super(new BinomialTotal(1), noise, nPrior);
      this.start = Math.max(0, rows.rows[k].start);
      this.end = this.start + rows.rows[k].values.length - 1;
      this.restStart = start2;
      this.restEnd = start2 + values.length - 1;
      const rest = rows.sum - rows.alpha[k];
      this.logs = Float64Array.from(values, (value, i) => Math.log(value) - logRising(rest, start2 + i));
      this.ratios = Float64Array.from({ length: values.length - 1 }, (_, i) => Math.exp(this.logs[i + 1] - this.logs[i]));
    }
    get ofNone() {
      if (this.nPrior.low > 0 || this.start > 0 || this.restStart > 0) return -Infinity;
      return this.nPrior.log(0) - this.rate * Math.abs(this.first) + this.logs[0];
    }
    sumOverTotals(n) {
      const { total, restStart, logs, ratios, first } = this;
      const from = Math.max(this.start, n - this.restEnd);
      const to = Math.min(this.end, n - restStart);
      if (from > to) return -1e300;
      total.at(n);
      const up = Math.exp(this.rate);
      const down = 1 / up;
      const ratio2 = (x) => total.ratio(x) * (x < first ? up : down) / ratios[n - x - 1 - restStart];
      let [low, high] = [from, to];
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (ratio2(middle) > 1) low = middle + 1;
        else high = middle;
      }
      let sum = 1;
      let term = 1;
      for (let x = low; x < to && term > 1e-18; x += 1) {
        term *= ratio2(x);
        sum += term;
      }
      term = 1;
      for (let x = low - 1; x >= from && term > 1e-18; x -= 1) {
        term /= ratio2(x);
        sum += term;
      }
      return total.log(low) - this.rate * Math.abs(first - low) + logs[n - low - restStart] + Math.log(sum);
    }
  };
  function highest(values) {
    let best = 0;
    for (let i = 1; i < values.length; i += 1) if (values[i] > values[best]) best = i;
    return best;
  }
  function onSimplex(counts, n) {
    const sorted = [...counts].sort((a, b) => b - a);
    let [sum, shift] = [0, 0];
    sorted.forEach((count2, i) => {
      sum += count2;
      if (count2 - (sum - n) / (i + 1) > 0) shift = (sum - n) / (i + 1);
    });
    return counts.map((count2) => Math.max(count2 - shift, 0));
  }
  function unresolved(name) {
    return new ReleaseError("resolution", `${name}: noise hides too many counts for this reader; a published posterior can be read`);
  }

  // src/histogram/bins.js
  function binsOf({ bins }) {
    const ends2 = binEnds(bins);
    const lower = Float64Array.from(ends2, ([low]) => toNumber(low));
    const upper = Float64Array.from(ends2, ([, high]) => toNumber(high));
    return { lower, upper, isAtom: Array.from(lower, (low, bin) => low === upper[bin]) };
  }

  // src/random.js
  function generator(seed) {
    let mixed = hashOf(String(seed));
    const next = () => {
      mixed = mixed + 2654435769 | 0;
      let z = Math.imul(mixed ^ mixed >>> 16, 2246822507);
      z = Math.imul(z ^ z >>> 13, 3266489909);
      return z ^ z >>> 16 | 0;
    };
    let [a, b, c, d] = [next(), next(), next(), next()];
    const rotated = (x, by) => x << by | x >>> 32 - by;
    const bits2 = () => {
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
    return () => ((bits2() >>> 5) * 67108864 + (bits2() >>> 6)) / 9007199254740992;
  }
  function uniforms(rng) {
    return typeof rng === "function" ? rng : generator(rng);
  }
  function hashOf(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash;
  }
  function normals(random) {
    let kept2 = null;
    return () => {
      if (kept2 !== null) {
        const found = kept2;
        kept2 = null;
        return found;
      }
      const radius = Math.sqrt(-2 * Math.log(1 - random()));
      const angle = 2 * Math.PI * random();
      kept2 = radius * Math.sin(angle);
      return radius * Math.cos(angle);
    };
  }

  // src/tree/matrices.js
  var SWEEPS = 30;
  function identity(d, factor = 1) {
    return Array.from({ length: d }, (_, i) => Array.from({ length: d }, (_2, j) => i === j ? factor : 0));
  }
  function times2(matrix, vector) {
    return matrix.map((row4) => row4.reduce((sum, entry, k) => sum + entry * vector[k], 0));
  }
  function moved(from, matrix, steps2) {
    return times2(matrix, steps2).map((step, i) => from[i] + step);
  }
  function outer(matrix) {
    return matrix.map((row4) => times2(matrix, row4));
  }
  function cholesky(matrix) {
    const factor = identity(matrix.length, 0);
    matrix.forEach((row4, i) => {
      for (let j = 0; j <= i; j += 1) {
        let rest = row4[j];
        for (let k = 0; k < j; k += 1) rest -= factor[i][k] * factor[j][k];
        factor[i][j] = i === j ? Math.sqrt(rest) : rest / factor[j][j];
      }
    });
    return factor;
  }
  function volume(factor) {
    return factor.reduce((product, row4, i) => product * row4[i], 1);
  }
  function eigen(symmetric) {
    const d = symmetric.length;
    const a = symmetric.map((row4) => [...row4]);
    const vectors = identity(d);
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
      for (let p = 0; p < d; p += 1) {
        for (let q = p + 1; q < d; q += 1) {
          if (a[p][q] === 0) continue;
          const angle = 0.5 * Math.atan2(2 * a[p][q], a[p][p] - a[q][q]);
          const [c, s] = [Math.cos(angle), Math.sin(angle)];
          for (let k = 0; k < d; k += 1) [a[k][p], a[k][q]] = [c * a[k][p] + s * a[k][q], c * a[k][q] - s * a[k][p]];
          for (let k = 0; k < d; k += 1) [a[p][k], a[q][k]] = [c * a[p][k] + s * a[q][k], c * a[q][k] - s * a[p][k]];
          for (const row4 of vectors) [row4[p], row4[q]] = [c * row4[p] + s * row4[q], c * row4[q] - s * row4[p]];
          [a[p][q], a[q][p]] = [0, 0];
        }
      }
    }
    return { values: a.map((row4, i) => row4[i]), vectors };
  }

  // src/tree/hyperparameters.js
  var [STEP2, FINE_STEP] = [1.5, 1];
  var FEW_LEAVES = 50;
  var MANY_LEAVES = 2e3;
  var LEAST2 = 3e-3;
  var ROUNDS = 4;
  var MOST3 = { 2: 400, 3: 1500 };
  var CURVED = 0.3;
  var EMPTY = -1.4;
  function* weighedPoints(passer) {
    const ofTree = (point) => passer.ofTree(point);
    const ofLeaves = function* ofLeaves2(point) {
      yield;
      return passer.ofLeaves(point);
    };
    const { leavesAreReleased } = passer;
    const { middle, factor } = yield* newton(leavesAreReleased ? ofLeaves : ofTree, startOf(passer));
    const isLarge = leavesAreReleased && passer.nLeaves > MANY_LEAVES;
    return isLarge ? yield* fewPoints(passer, middle, factor) : yield* lattice(passer, ofTree, middle, factor);
  }
  function* fewPoints(passer, middle, factor) {
    const d = middle.length;
    const points = axes(d, Math.sqrt(d)).map((away) => moved(middle, factor, away));
    const above = [];
    for (const point of points) above.push((yield* passer.up(point, false)).logEvidence - passer.logEvidenceOfLeaves(point));
    const logs = points.map((point) => passer.ofLeaves(point) + 0.5 * d);
    const { highest: highest3, total, weights } = weighed(logs);
    const logVolume = highest3 + Math.log(total / (2 * d) * (2 * Math.PI) ** (0.5 * d) * Math.abs(volume(factor)));
    const most = Math.max(...above);
    const logEvidence = logVolume + most + Math.log(weights.reduce((sum, weight, i) => sum + weight * Math.exp(above[i] - most), 0));
    const uneven = 2 * d * weights.reduce((sum, weight) => sum + weight * weight, 0) - 1;
    const widest = Math.sqrt(Math.max(...outer(factor).map((row4, i) => row4[i])));
    return { ...byWeight(points, weights), logEvidence, error: uneven * widest };
  }
  function* lattice(passer, ofTree, mode2, guess) {
    const step = passer.nLeaves <= FEW_LEAVES ? FINE_STEP : STEP2;
    const d = mode2.length;
    let [middle, factor] = [mode2, guess];
    let [points, known, places, logs, spacing] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      spacing = factor.map((row4) => row4.map((entry) => entry * step));
      const [from, by] = [middle, spacing];
      ({ places, logs } = yield* flooded((place) => ofTree(moved(from, by, place)), d));
      known = weighed(logs);
      points = places.map((place) => moved(middle, spacing, place));
      const effective = 1 / known.weights.reduce((sum, weight) => sum + weight * weight, 0);
      const ideal = (4 * Math.PI / step ** 2) ** (0.5 * d);
      if (0.5 * ideal < effective && effective < 2.5 * ideal) break;
      [middle, factor] = laidOutAgain(points, known.weights, spacing);
    }
    const { highest: highest3, total, weights } = known;
    const heaviest = Math.max(...weights);
    const isKept = weights.map((weight) => weight >= LEAST2 * heaviest);
    const colours = places.map((place) => place.reduce((sum, at) => sum + at, 0) % 2 === 0 ? 1 : -1);
    const uneven = weights.reduce((sum, weight, i) => sum + weight * colours[i], 0);
    const leftOut = weights.reduce((sum, weight, i) => sum + (isKept[i] ? 0 : weight), 0);
    const kept2 = byWeight(points.filter((_, i) => isKept[i]), weights.filter((_, i) => isKept[i]));
    return {
      points: kept2.points,
      weights: kept2.weights.map((weight) => weight / (1 - leftOut)),
      logEvidence: highest3 + Math.log(total * Math.abs(volume(spacing))),
      error: uneven ** 2 + leftOut
    };
  }
  function weighed(logs) {
    const highest3 = Math.max(...logs);
    const raw = logs.map((log) => Math.exp(log - highest3));
    const total = raw.reduce((sum, one) => sum + one, 0);
    return { highest: highest3, total, weights: raw.map((one) => one / total) };
  }
  function axes(d, distance) {
    return [distance, -distance].flatMap((away) => identity(d, away));
  }
  function laidOutAgain(points, weights, spacing) {
    const mean = points[0].map((_, k) => points.reduce((sum, point, i) => sum + weights[i] * point[k], 0));
    const steps2 = outer(spacing);
    const covariance = steps2.map((row4, k) => row4.map((step, l) => points.reduce((sum, point, i) => sum + weights[i] * (point[k] - mean[k]) * (point[l] - mean[l]), 0) + 0.09 * step));
    return [mean, cholesky(covariance)];
  }
  function byWeight(points, weights) {
    const order = weights.map((_, i) => i).sort((i, j) => weights[j] - weights[i]);
    return { points: order.map((i) => points[i]), weights: order.map((i) => weights[i]) };
  }
  function startOf({ tree, nLeaves, population }) {
    const values = tree.values.filter((released) => released !== null).at(-1);
    const size = tree.sizes === null ? nLeaves : sumOf(tree.sizes);
    return [Math.log(Math.max(sumOf(values), 1) / size), 0, EMPTY].slice(0, Math.max(population.dimensions, 2));
  }
  function sumOf(numbers) {
    let sum = 0;
    for (let i = 0; i < numbers.length; i += 1) sum += numbers[i];
    return sum;
  }
  function* newton(logDensity, from) {
    const d = from.length;
    let [middle, factor] = [from, identity(d, 0.3)];
    let height = yield* logDensity(middle);
    for (let round = 0; round < 25; round += 1) {
      const { gradient, curvature: curvature2 } = yield* differences(logDensity, middle, height, factor);
      const { values, vectors } = eigen(curvature2);
      const bent = values.map((value) => Math.max(value, 0.05));
      const along = bent.map((value, k) => vectors.reduce((sum, row4, i) => sum + row4[k] * gradient[i], 0) / value);
      let move = times2(vectors, along);
      const length = Math.hypot(...move);
      move = move.map((part) => part * Math.min(1, 4 / Math.max(length, 1e-300)));
      let [proposed, higher] = [];
      for (; ; ) {
        proposed = moved(middle, factor, move);
        higher = yield* logDensity(proposed);
        if (higher >= height || Math.hypot(...move) < 1e-3) break;
        move = move.map((part) => part / 2);
      }
      if (higher >= height) [middle, height] = [proposed, higher];
      const wide = factor.map((row4) => bent.map((value, k) => row4.reduce((sum, entry, i) => sum + entry * vectors[i][k], 0) / Math.sqrt(value)));
      factor = cholesky(outer(wide));
      if (length < 0.3 && Math.max(...bent) < 4 && Math.min(...bent) > 0.25) break;
    }
    return { middle, factor };
  }
  function* differences(logDensity, middle, height, factor) {
    const [h, d] = [CURVED, middle.length];
    const at = (steps2) => logDensity(moved(middle, factor, steps2));
    const ends2 = [];
    for (const steps2 of axes(d, h)) ends2.push(yield* at(steps2));
    const [up, down] = [ends2.slice(0, d), ends2.slice(d)];
    const curvature2 = identity(d, 0);
    for (let i = 0; i < d; i += 1) {
      curvature2[i][i] = -(up[i] + down[i] - 2 * height) / h ** 2;
      for (let j = 0; j < i; j += 1) {
        const steps2 = Array.from({ length: d }, (_, k) => k === i || k === j ? h : 0);
        const both = yield* at(steps2);
        const neither = yield* at(steps2.map((step) => -step));
        curvature2[i][j] = -(both + neither - up[i] - down[i] - up[j] - down[j] + 2 * height) / (2 * h * h);
        curvature2[j][i] = curvature2[i][j];
      }
    }
    return { gradient: up.map((one, i) => (one - down[i]) / (2 * h)), curvature: curvature2 };
  }
  function* flooded(logDensity, d) {
    const origin = new Array(d).fill(0);
    const known = /* @__PURE__ */ new Map([[origin.join(" "), { place: origin, log: yield* logDensity(origin) }]]);
    const fresh = [known.get(origin.join(" "))];
    let highest3 = fresh[0].log;
    while (fresh.length > 0 && known.size < MOST3[d]) {
      fresh.sort((one, other) => one.log - other.log);
      const { place, log } = fresh.pop();
      if (log < highest3 + Math.log(LEAST2)) continue;
      for (const step of axes(d, 1)) {
        const next = place.map((at, k) => at + step[k]);
        const name = next.join(" ");
        if (known.has(name)) continue;
        const neighbour2 = { place: next, log: yield* logDensity(next) };
        known.set(name, neighbour2);
        fresh.push(neighbour2);
        highest3 = Math.max(highest3, neighbour2.log);
      }
    }
    const found = [...known.values()];
    return { places: found.map(({ place }) => place), logs: found.map(({ log }) => log) };
  }

  // src/tree/populations.js
  var DEFAULT_POPULATION = "contaminated";
  var ZERO_INFLATED = "zero-inflated";
  var RECIPROCAL = "reciprocal";
  var OUTLIERS = 0.05;
  var [MIDDLE, SCALE, SPREAD2] = [Math.log(30), 3, 2];
  var LEAST_SPREAD = 1e-3;
  var POPULATIONS = {
    contaminated: { dimensions: 2, logWeights: contaminated },
    [ZERO_INFLATED]: { dimensions: 3, logWeights: zeroInflated },
    "negative-binomial": { dimensions: 2, logWeights: negativeBinomial },
    [RECIPROCAL]: { dimensions: 0, logWeights: (low, width2) => Float64Array.from({ length: width2 }, (_, i) => -Math.log1p(low + i)) }
  };
  function namedPopulation(name) {
    const names = Object.keys(POPULATIONS).join(", ");
    if (name === "flat") {
      throw new ReleaseError("prior", `a flat prior on leaves puts nearly all weight on large sums, and is not offered: take one of ${names}`);
    }
    if (!Object.hasOwn(POPULATIONS, name)) throw new ReleaseError("prior", `there is no population of leaves ${shown(name)}: take one of ${names}`);
    return { name, ...POPULATIONS[name] };
  }
  function logHyperprior([logMean, logSpread, logit]) {
    if (logSpread > 100) return -Infinity;
    const z = Math.abs(logMean - MIDDLE) / SCALE;
    const logistic = -z - 2 * Math.log1p(Math.exp(-z)) - Math.log(SCALE);
    const halfNormal = 0.5 * Math.log(2 / Math.PI) - Math.log(SPREAD2) - 0.5 * (Math.exp(logSpread) / SPREAD2) ** 2;
    const ofShare = logit === void 0 ? 0 : logShare(logit) + logShare(-logit);
    return logistic + halfNormal + logSpread + ofShare;
  }
  function negativeBinomial(low, width2, [logMean, logSpread], size) {
    const mean = Math.exp(logMean) * size;
    const a = Math.max(Math.exp(logSpread), LEAST_SPREAD) ** -2;
    const found = new Float64Array(width2);
    const fall = Math.log1p(a / mean);
    let log = -a * Math.log1p(mean / a);
    if (low > 0) log += logGamma(low + a) - logGamma(a) - logGamma(low + 1) - low * fall;
    for (let i = 0; i < width2; i += 1) {
      found[i] = log;
      log += Math.log((low + i + a) / (low + i + 1)) - fall;
    }
    return found;
  }
  function contaminated(low, width2, point, size) {
    const found = negativeBinomial(low, width2, point, size);
    const mean = Math.exp(point[0]) * size;
    const [ofUsual, ofOutliers] = [Math.log1p(-OUTLIERS), Math.log(OUTLIERS * mean)];
    for (let i = 0; i < width2; i += 1) {
      const outlying = ofOutliers - Math.log((low + i + mean) * (low + i + mean + 1));
      const usual = ofUsual + found[i];
      found[i] = Math.max(usual, outlying) + Math.log1p(Math.exp(-Math.abs(usual - outlying)));
    }
    return found;
  }
  function zeroInflated(low, width2, point, size) {
    const found = contaminated(low, width2, point, size);
    const [ofEmpty, ofOthers] = [logShare(point[2]), logShare(-point[2])];
    for (let i = 0; i < width2; i += 1) found[i] += ofOthers;
    if (low === 0) found[0] = Math.max(ofEmpty, found[0]) + Math.log1p(Math.exp(-Math.abs(ofEmpty - found[0])));
    return found;
  }
  function logShare(logit) {
    return logit > 0 ? -Math.log1p(Math.exp(-logit)) : logit - Math.log1p(Math.exp(logit));
  }

  // src/tree/fft.js
  var PLANS = /* @__PURE__ */ new Map();
  function transformLength(least) {
    let length = 1;
    while (length < least) length *= 2;
    return length;
  }
  function transform(re, im) {
    const { swaps, cos, sin } = planOf(re.length);
    const n = re.length;
    for (let at = 0; at < swaps.length; at += 2) {
      const [i, j] = [swaps[at], swaps[at + 1]];
      let kept2 = re[i];
      re[i] = re[j];
      re[j] = kept2;
      kept2 = im[i];
      im[i] = im[j];
      im[j] = kept2;
    }
    let half = 1;
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
  function fourfold(re, im, half, cos, sin) {
    const n = re.length;
    const step = n / (4 * half);
    for (let begin2 = 0; begin2 < n; begin2 += 4 * half) {
      for (let k = 0, at = 0; k < half; k += 1, at += step) {
        const p = begin2 + k;
        const q = p + half;
        const r = q + half;
        const s = r + half;
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
    if (plan === void 0) {
      const swaps = [];
      const bits2 = Math.log2(n);
      for (let i = 0; i < n; i += 1) {
        let j = 0;
        for (let bit = 0; bit < bits2; bit += 1) if (i & 1 << bit) j |= 1 << bits2 - 1 - bit;
        if (j > i) swaps.push(i, j);
      }
      const angle = (k) => 2 * Math.PI * k / n;
      plan = {
        swaps: Int32Array.from(swaps),
        cos: Float64Array.from({ length: n }, (_, k) => Math.cos(angle(k))),
        sin: Float64Array.from({ length: n }, (_, k) => Math.sin(angle(k)))
      };
      PLANS.set(n, plan);
    }
    return plan;
  }

  // src/tree/messages.js
  var TAIL2 = 1e-12;
  var DIRECT = 1500;
  function normalised(low, weights) {
    let total = 0;
    for (let i = 0; i < weights.length; i += 1) total += weights[i];
    const least = TAIL2 / weights.length * total;
    let [start2, stop] = [0, weights.length];
    while (start2 < stop && !(weights[start2] > least)) start2 += 1;
    while (stop > start2 && !(weights[stop - 1] > least)) stop -= 1;
    const kept2 = weights.slice(start2, stop);
    for (let i = 0; i < kept2.length; i += 1) kept2[i] /= total;
    return { message: { low: low + start2, weights: kept2 }, logSum: Math.log(total) };
  }
  function placed({ low, weights }, on, width2) {
    const found = new Float64Array(width2);
    const first = Math.max(0, low - on);
    const last = Math.min(width2, low + weights.length - on);
    for (let i = first; i < last; i += 1) found[i] = weights[i + on - low];
    return found;
  }
  function scaled2(weights) {
    let largest3 = 0;
    for (let i = 0; i < weights.length; i += 1) if (weights[i] > largest3) largest3 = weights[i];
    if (largest3 > 0) for (let i = 0; i < weights.length; i += 1) weights[i] /= largest3;
    return weights;
  }
  function summed(left, right, isKept) {
    const [l, r] = [left.message.weights, right.message.weights];
    const width2 = l.length + r.length - 1;
    const isDirect = l.length * r.length <= DIRECT;
    const spectrum = isDirect ? null : spectrumOf(l, r, width2, isKept);
    const weights = isDirect ? convolved2(l, r) : convolvedBy(spectrum, width2);
    const work = isDirect ? l.length * r.length : 10 * spectrum.re.length * Math.log2(spectrum.re.length);
    return { left, right, spectrum: isKept ? spectrum : null, work, ...normalised(left.message.low + right.message.low, weights) };
  }
  function divided({ left, right, spectrum, message }, outside) {
    const [l, r] = [left.message.weights, right.message.weights];
    const width2 = l.length + r.length - 1;
    const padded = placed({ low: message.low, weights: outside }, left.message.low + right.message.low, width2);
    const parts = spectrum === null ? [correlated(r, padded, l.length), correlated(l, padded, r.length)] : correlatedBy(spectrum, padded, l.length, r.length);
    return parts.map(scaled2);
  }
  function convolved2(l, r) {
    const sums = new Float64Array(l.length + r.length - 1);
    for (let i = 0; i < l.length; i += 1) {
      const weight = l[i];
      for (let j = 0; j < r.length; j += 1) sums[i + j] += weight * r[j];
    }
    return sums;
  }
  function correlated(other, outside, width2) {
    const sums = new Float64Array(width2);
    for (let i = 0; i < width2; i += 1) {
      let sum = 0;
      for (let j = 0; j < other.length; j += 1) sum += other[j] * outside[i + j];
      sums[i] = sum;
    }
    return sums;
  }
  function spectrumOf(l, r, width2, isKept) {
    const length = transformLength(width2);
    const { re, im } = isKept ? { re: new Float64Array(length), im: new Float64Array(length) } : workspace(length, "spectrum");
    const balance = Math.sqrt(squares(l) / squares(r));
    re.set(l);
    for (let j = 0; j < r.length; j += 1) im[j] = balance * r[j];
    transform(re, im);
    return { re, im, balance };
  }
  var WORKSPACES = /* @__PURE__ */ new Map();
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
  function convolvedBy({ re, im, balance }, width2) {
    const length = re.length;
    const { re: a, im: b } = workspace(length, "product");
    for (let k = 0; k < length; k += 1) {
      a[k] = re[k] * re[k] - im[k] * im[k];
      b[k] = 2 * re[k] * im[k];
    }
    transform(b, a);
    const sums = new Float64Array(width2);
    const factor = 0.5 / (balance * length);
    for (let k = 0; k < width2; k += 1) sums[k] = Math.max(b[k] * factor, 0);
    return sums;
  }
  function correlatedBy({ re, im }, padded, ofLeft, ofRight) {
    const length = re.length;
    const { re: dr, im: di } = workspace(length, "spectrum");
    dr.set(padded);
    transform(dr, di);
    const { re: a, im: b } = workspace(length, "product");
    for (let k = 0; k < length; k += 1) {
      const other = k === 0 ? 0 : length - k;
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

  // src/tree/passes.js
  var REACH = 12 - Math.log(TAIL2);
  var TABLE = 2 ** 22;
  var Passer = class {
    /** @param {NoisyTree} tree */
    constructor(tree, population) {
      this.tree = tree;
      this.population = population;
      this.depth = tree.parents.length;
      this.nodes = [1, ...tree.parents.map(({ length }) => length)];
      this.families = tree.parents.map((parents, level) => {
        const families = Array.from({ length: this.nodes[level] }, () => []);
        for (let node = 0; node < parents.length; node += 1) families[parents[node]].push(node);
        return families;
      });
      this.findKeys();
    }
    get nLeaves() {
      return this.nodes[this.depth];
    }
    get leavesAreReleased() {
      return this.tree.scales[this.depth] !== null;
    }
    /** Leaves that differ in what their messages depend on: each once, and which of them every leaf is. */
    findKeys() {
      const { values, scales: scales2, sizes } = this.tree;
      const [released, scale2] = [values[this.depth], scales2[this.depth]];
      const above = scale2 === null ? this.boundsFromAbove() : null;
      const reach2 = scale2 === null ? 0 : Math.ceil(REACH * scale2);
      const numbers = /* @__PURE__ */ new Map();
      this.keys = [];
      this.keyOf = new Int32Array(this.nLeaves);
      for (let leaf = 0; leaf < this.nLeaves; leaf += 1) {
        const value = released === null ? 0 : released[leaf];
        const bound2 = above === null ? Math.max(value, 0) + reach2 : above[leaf];
        const size = sizes === null ? 1 : sizes[leaf];
        const name = `${value} ${bound2} ${size}`;
        if (!numbers.has(name)) {
          numbers.set(name, this.keys.length);
          this.keys.push({ value, bound: bound2, size, low: scale2 === null ? 0 : Math.max(Math.min(value, bound2) - reach2, 0), number: 0 });
        }
        const key = numbers.get(name);
        this.keys[key].number += 1;
        this.keyOf[leaf] = key;
      }
      this.largest = this.keys.reduce((most, { bound: bound2 }) => Math.max(most, bound2), 0);
      this.cells = this.keys.reduce((sum, { low, bound: bound2 }) => sum + bound2 - low + 1, 0);
      this.isTabled = this.keys.every(({ size }) => size === this.keys[0].size) && this.largest < Math.min(TABLE, 4 * this.cells);
    }
    /** A count that each leaf exceeds only if a noise above it exceeds its reach. */
    boundsFromAbove() {
      const { parents, values, scales: scales2 } = this.tree;
      let bounds3 = [Infinity];
      for (let level = 0; level <= this.depth; level += 1) {
        if (level > 0) bounds3 = Array.from(parents[level - 1], (parent) => bounds3[parent]);
        const [released, scale2] = [values[level], scales2[level]];
        if (released !== null) bounds3 = bounds3.map((bound2, node) => Math.min(bound2, Math.max(released[node], 0) + Math.ceil(REACH * scale2)));
      }
      return bounds3;
    }
    /** The message of every key, and the logarithm of its sum. */
    leaves(point) {
      const scale2 = this.tree.scales[this.depth];
      const table2 = this.isTabled ? this.population.logWeights(0, this.largest + 1, point, this.keys[0].size) : null;
      const constant = scale2 === null ? 0 : Math.log(Math.tanh(0.5 / scale2));
      return this.keys.map(({ value, bound: bound2, size, low }) => {
        const width2 = bound2 - low + 1;
        const logs = table2 === null ? this.population.logWeights(low, width2, point, size) : table2.slice(low, bound2 + 1);
        if (scale2 !== null) for (let i = 0; i < width2; i += 1) logs[i] -= Math.abs(low + i - value) / scale2;
        const highest3 = largestOf(logs);
        for (let i = 0; i < width2; i += 1) logs[i] = Math.exp(logs[i] - highest3);
        const { message, logSum: logSum2 } = normalised(low, logs);
        return { message, logSum: logSum2 + highest3 + constant };
      });
    }
    /** The log density of a point and of the leaves' values alone. */
    ofLeaves(point) {
      const prior = logHyperprior(point);
      if (prior === -Infinity) return prior;
      return prior + this.logEvidenceOfLeaves(point);
    }
    logEvidenceOfLeaves(point) {
      if (!this.isTabled || 8 * this.largest > this.cells) {
        return this.leaves(point).reduce((sum, { logSum: logSum2 }, key) => sum + logSum2 * this.keys[key].number, 0);
      }
      const rate2 = 1 / this.tree.scales[this.depth];
      const table2 = this.population.logWeights(0, this.largest + 1, point, this.keys[0].size);
      const below = new Float64Array(table2.length);
      const above = new Float64Array(table2.length);
      for (let n = 0, log = -Infinity; n < table2.length; n += 1) below[n] = log = logSum(table2[n], log - rate2);
      for (let n = table2.length - 1, log = -Infinity; n >= 0; n -= 1) {
        above[n] = log - rate2;
        log = logSum(table2[n], above[n]);
      }
      const constant = Math.log(Math.tanh(0.5 * rate2));
      return this.keys.reduce((sum, { value, number: number2 }) => {
        const at = Math.max(value, 0);
        return sum + number2 * (constant + logSum(below[at], above[at]) - (at - value) * rate2);
      }, 0);
    }
    /** The log density of a point and of all that was released. */
    *ofTree(point) {
      const prior = logHyperprior(point);
      return prior === -Infinity ? prior : prior + (yield* this.up(point, false)).logEvidence;
    }
    /**
     * Pass messages up to the root.
     *
     * @param {number[]} point
     * @param {boolean} isKept Whether the way back is kept.
     * @param {number} most Multiplications, above which null comes back.
     */
    *up(point, isKept, most = Infinity) {
      const { values, scales: scales2 } = this.tree;
      const leaves = this.leaves(point);
      let logEvidence = leaves.reduce((sum, one, key) => sum + one.logSum * this.keys[key].number, 0);
      let work = 4 * this.cells;
      let parts = Array.from(this.keyOf, (key, node) => ({ message: leaves[key].message, node }));
      const levels = [];
      for (let level = this.depth - 1; level >= 0; level -= 1) {
        const below = parts;
        const sums = [];
        parts = [];
        for (let node = 0; node < this.nodes[level]; node += 1) {
          const family = this.families[level][node].map((child) => below[child]);
          const sum = added(family, isKept, (pair) => {
            logEvidence += pair.logSum;
            work += pair.work;
          });
          let { message } = sum;
          if (values[level] !== null) {
            const { weights, highest: highest3 } = withNoise(message, values[level][node], scales2[level]);
            const cut = normalised(message.low, weights);
            logEvidence += cut.logSum + highest3;
            message = cut.message;
          }
          parts.push({ message, node });
          if (isKept) sums.push(sum);
          if (work > most) return null;
          yield;
        }
        if (isKept) levels.unshift({ nodes: below, sums });
      }
      return { logEvidence, work, root: parts[0].message, levels };
    }
    /**
     * Pass down what the rest says, and give the marginals of every level.
     *
     * @param {object} upward From `up`, with its way back.
     * @param {function(number, number, {low: number, weights: Float64Array})} found Is given level, node, chances.
     * @returns {{rounding: number, cut: number}} What rounding and the cut of tails may change a chance by, about.
     */
    *down({ root: root2, levels }, found) {
      const errors = { rounding: 0, cut: 0 };
      let outside = [new Float64Array(root2.weights.length).fill(1)];
      let messages = [root2];
      found(0, 0, marginal(root2, outside[0], errors));
      for (let level = 0; level < this.depth; level += 1) {
        const { nodes, sums } = levels[level];
        const below = new Array(nodes.length);
        for (let node = 0; node < sums.length; node += 1) {
          const { message } = sums[node];
          const said = this.saidOfSum(level, node, message, { low: messages[node].low, weights: outside[node] });
          const waiting2 = [[sums[node], said]];
          while (waiting2.length > 0) {
            const [part, weights] = waiting2.pop();
            if (part.left === void 0) {
              below[part.node] = weights;
              found(level + 1, part.node, marginal(part.message, weights, errors));
            } else {
              const [first, second] = divided(part, weights);
              waiting2.push([part.left, first], [part.right, second]);
            }
          }
          yield;
        }
        outside = below;
        messages = nodes.map(({ message }) => message);
      }
      return errors;
    }
    /** What the rest and a node's released value say of the sum below it, on its window. */
    saidOfSum(level, node, { low, weights: { length } }, outside) {
      const weights = placed(outside, low, length);
      const released = this.tree.values[level];
      return scaled2(released === null ? weights : withNoise({ low, weights }, released[node], this.tree.scales[level]).weights);
    }
  };
  function added(parts, isKept, tell) {
    let left = parts;
    while (left.length > 1) {
      const sums = [];
      for (let i = 0; i < left.length; i += 2) {
        const sum = i + 1 < left.length ? summed(left[i], left[i + 1], isKept) : left[i];
        if (sum !== left[i]) tell(sum);
        sums.push(sum);
      }
      left = sums;
    }
    return left[0];
  }
  function withNoise({ low, weights }, value, scale2) {
    const constant = Math.log(Math.tanh(0.5 / scale2));
    let nearest2 = Infinity;
    for (let i = 0; i < weights.length; i += 1) if (weights[i] > 0) nearest2 = Math.min(nearest2, Math.abs(low + i - value));
    const found = new Float64Array(weights.length);
    for (let i = 0; i < weights.length; i += 1) {
      if (weights[i] > 0) found[i] = weights[i] * Math.exp((nearest2 - Math.abs(low + i - value)) / scale2);
    }
    return { weights: found, highest: constant - nearest2 / scale2 };
  }
  function marginal({ low, weights }, outside, errors) {
    const joint = new Float64Array(weights.length);
    let [total, ofMessage, ofOutside] = [0, 0, 0];
    for (let i = 0; i < weights.length; i += 1) {
      joint[i] = weights[i] * outside[i];
      total += joint[i];
      ofMessage += weights[i] * weights[i];
      ofOutside += outside[i] * outside[i];
    }
    const rounding = Number.EPSILON * Math.sqrt(ofMessage * ofOutside) / total;
    errors.rounding = Math.max(errors.rounding, Number.isNaN(rounding) ? Infinity : rounding);
    if (total > 0) for (let i = 0; i < joint.length; i += 1) joint[i] /= total;
    const ends2 = (low > 0 ? joint[0] : 0) + joint[joint.length - 1];
    errors.cut = Math.max(errors.cut, ends2 * joint.length);
    return { low, weights: joint };
  }
  function largestOf(logs) {
    let highest3 = -Infinity;
    for (let i = 0; i < logs.length; i += 1) if (logs[i] > highest3) highest3 = logs[i];
    return highest3;
  }
  function logSum(a, b) {
    const high = Math.max(a, b);
    return high === -Infinity ? high : high + Math.log1p(Math.exp(-Math.abs(a - b)));
  }

  // src/tree/posterior.js
  var ROUNDED = 1e-11;
  var MOST_WORK = 4e9;
  var PASSES_OF_FEW = { 0: 3, 2: 200, 3: 1e3 };
  var PASSES = { 0: 3, 2: 90, 3: 300 };
  var PASSES_OF_MANY = { 0: 3, 2: 16, 3: 24 };
  function* treePosterior(tree, population, most = MOST_WORK) {
    const passer = new Passer(tree, population);
    const isFitted = population.dimensions > 0;
    const first = yield* passedOrRefused(passer, !isFitted, most);
    const hyperparameters = isFitted ? yield* weighedPoints(passer) : { points: [[0, 0]], weights: [1], logEvidence: first.logEvidence, error: 0 };
    const marginals = passer.nodes.map((number2) => Array.from({ length: number2 }, () => ({ low: 0, weights: new Float64Array(0) })));
    const errors = { rounding: 0, cut: 0 };
    for (const [i, point] of hyperparameters.points.entries()) {
      const upward = isFitted ? yield* passer.up(point, true) : first;
      const off = yield* passer.down(upward, (level, node, law) => mixIn(marginals[level][node], law, hyperparameters.weights[i]));
      errors.rounding = Math.max(errors.rounding, off.rounding);
      errors.cut = Math.max(errors.cut, off.cut);
    }
    return new TreePosterior(passer, hyperparameters, marginals, errors);
  }
  function* passedOrRefused(passer, isKept, most) {
    const { dimensions, name } = passer.population;
    const ofSize = passer.nLeaves > MANY_LEAVES ? PASSES_OF_MANY : passer.nLeaves > FEW_LEAVES ? PASSES : PASSES_OF_FEW;
    const passes = ofSize[dimensions];
    const refuse = () => {
      const lighter = dimensions === 3 ? "; the population contaminated takes a third of it, or less" : "";
      throw new ReleaseError(
        "resolution",
        `the tree has ${passer.nLeaves} leaves under wide noise: with the population ${name} this reader would need more than some seconds. Python works it out, as suffice tree RELEASE TREE --population ${name} --out FILE${lighter}`
      );
    };
    if (4 * passer.cells * passes > most) refuse();
    const upward = yield* passer.up(dimensions === 0 ? [0, 0] : startOf(passer), isKept, most / passes);
    if (upward === null) refuse();
    return upward;
  }
  function mixIn(mixture2, { low, weights }, factor) {
    const isFirst = mixture2.weights.length === 0;
    const begin2 = isFirst ? low : Math.min(low, mixture2.low);
    const end = Math.max(low + weights.length, isFirst ? 0 : mixture2.low + mixture2.weights.length);
    if (isFirst || begin2 < mixture2.low || end > mixture2.low + mixture2.weights.length) {
      const wider = new Float64Array(end - begin2);
      wider.set(mixture2.weights, isFirst ? 0 : mixture2.low - begin2);
      [mixture2.low, mixture2.weights] = [begin2, wider];
    }
    for (let i = 0; i < weights.length; i += 1) mixture2.weights[low - mixture2.low + i] += factor * weights[i];
  }
  var TreePosterior = class {
    constructor(passer, hyperparameters, marginals, { rounding, cut }) {
      Object.assign(this, { passer, hyperparameters, marginals, rounding, cut });
    }
    get logEvidence() {
      return this.hyperparameters.logEvidence;
    }
    /** What a chance may be off by, about: rounding, cut tails, and the rule over hyperparameters. */
    get error() {
      return this.rounding + this.cut + this.hyperparameters.error;
    }
    /** Mean, standard deviation, and ends with at most half of the rest beyond each. */
    summary(level, node, mass) {
      return summaryOf(this.marginals[level][node], mass);
    }
    /** Draw all counts jointly: by level, an array of whole numbers. `random` gives numbers from 0 to 1. */
    *draws(number2, random) {
      const { points, weights } = this.hyperparameters;
      const which = Array.from({ length: number2 }, () => chosen(weights, random()));
      const drawn = new Array(number2);
      for (const [i, point] of points.entries()) {
        if (!which.includes(i)) continue;
        const upward = yield* this.passer.up(point, true);
        for (let draw2 = 0; draw2 < number2; draw2 += 1) {
          if (which[draw2] !== i) continue;
          drawn[draw2] = drawOf(this.passer, upward, random);
          yield;
        }
      }
      return drawn;
    }
  };
  function summaryOf({ low, weights }, mass) {
    let [mean, variance] = [0, 0];
    for (let i = 0; i < weights.length; i += 1) mean += i * weights[i];
    for (let i = 0; i < weights.length; i += 1) variance += (i - mean) ** 2 * weights[i];
    const outside = 0.5 * (1 - mass) + ROUNDED;
    let [lower, upper] = [0, weights.length - 1];
    for (let below = weights[0]; below <= outside && lower < weights.length - 1; below += weights[lower]) lower += 1;
    for (let above = weights[upper]; above <= outside && upper > 0; above += weights[upper]) upper -= 1;
    return { mean: low + mean, sd: Math.sqrt(variance), lower: low + lower, upper: low + upper };
  }
  function drawOf(passer, { root: root2, levels }, random) {
    const counts = passer.nodes.map((number2) => new Float64Array(number2));
    counts[0][0] = root2.low + chosen(root2.weights, random());
    levels.forEach(({ sums }, level) => {
      sums.forEach((sum, node) => {
        const waiting2 = [[sum, counts[level][node]]];
        while (waiting2.length > 0) {
          const [part, total] = waiting2.pop();
          if (part.left === void 0) counts[level + 1][part.node] = total;
          else {
            const first = firstPart(part.left.message, part.right.message, total, random());
            waiting2.push([part.left, first], [part.right, total - first]);
          }
        }
      });
    });
    return counts;
  }
  function firstPart(left, right, total, uniform) {
    const first = Math.max(left.low, total - right.low - right.weights.length + 1);
    const last = Math.min(left.low + left.weights.length - 1, total - right.low);
    const weights = new Float64Array(last - first + 1);
    for (let l = first; l <= last; l += 1) weights[l - first] = left.weights[l - left.low] * right.weights[total - l - right.low];
    return first + chosen(weights, uniform);
  }
  function chosen(weights, uniform) {
    let total = 0;
    for (let i = 0; i < weights.length; i += 1) total += weights[i];
    let left = uniform * total;
    for (let i = 0; i < weights.length; i += 1) {
      left -= weights[i];
      if (left < 0) return i;
    }
    let last = weights.length - 1;
    while (last > 0 && !(weights[last] > 0)) last -= 1;
    return last;
  }
  function finished(steps2) {
    for (; ; ) {
      const { done, value } = steps2.next();
      if (done) return value;
    }
  }

  // src/histogram/emission.js
  var LAST = 1e-17;
  function logEmission(mean, y, rate2) {
    const constant = Math.log(Math.tanh(rate2 / 2));
    const above = constant + rate2 * y + logAbove(mean, -rate2, y);
    if (y < 0) return above;
    const below = constant - rate2 * y + logBelow(mean, rate2, y);
    const high = Math.max(above, below);
    return high + Math.log1p(Math.exp(-Math.abs(above - below)));
  }
  function logEmissionOfNone(y, rate2) {
    return Math.log(Math.tanh(rate2 / 2)) - rate2 * Math.abs(y);
  }
  function logBelow(mean, slope2, n) {
    const rate2 = mean * Math.exp(slope2);
    if (n < rate2) return logPoisson(n, mean) + slope2 * n + Math.log(sumDown(n, rate2));
    return mean * Math.expm1(slope2) + Math.log1p(-Math.exp(logPoisson(n + 1, rate2)) * sumUp(n + 1, rate2));
  }
  function logAbove(mean, slope2, y) {
    const n = Math.max(y, -1);
    const rate2 = mean * Math.exp(slope2);
    if (n + 1 > rate2) return logPoisson(n + 1, mean) + slope2 * (n + 1) + Math.log(sumUp(n + 1, rate2));
    const rest = n < 0 ? 0 : Math.exp(logPoisson(n, rate2)) * sumDown(n, rate2);
    return mean * Math.expm1(slope2) + Math.log1p(-rest);
  }
  function sumDown(n, rate2) {
    let [term, total] = [1, 1];
    for (let i = n; i > 0 && term > LAST * total; i -= 1) {
      term *= i / rate2;
      total += term;
    }
    return total;
  }
  function sumUp(n, rate2) {
    let [term, total] = [1, 1];
    for (let i = n + 1; term > LAST * total; i += 1) {
      term *= rate2 / i;
      total += term;
    }
    return total;
  }
  function countGiven(mean, y, rate2, uniform) {
    if (!(mean > 0)) return 0;
    const [up, down] = [mean * Math.exp(rate2), mean * Math.exp(-rate2)];
    const ratio2 = (k) => (k <= y ? up : down) / k;
    let mode2 = Math.floor(down);
    if (mode2 < y) mode2 = Math.min(Math.floor(up), Math.max(Math.floor(y), 0));
    const above = [];
    const below = [];
    let total = 1;
    for (let k = mode2 + 1, term = 1; ; k += 1) {
      term *= ratio2(k);
      if (!(term > LAST * total)) break;
      above.push(term);
      total += term;
    }
    for (let k = mode2, term = 1; k > 0; k -= 1) {
      term /= ratio2(k);
      if (!(term > LAST * total)) break;
      below.push(term);
      total += term;
    }
    let left = uniform * total - 1;
    if (left < 0) return mode2;
    for (let i = 0; i < above.length; i += 1) {
      left -= above[i];
      if (left < 0) return mode2 + 1 + i;
    }
    for (let i = 0; i < below.length; i += 1) {
      left -= below[i];
      if (left < 0) return mode2 - 1 - i;
    }
    return mode2;
  }

  // src/histogram/grid.js
  var SPACING = 0.1;
  var LEAST3 = 0.05;
  var [BLOCK, MOST4] = [16, 320];
  var PLACES = [4, 16, 64, 256, 1024];
  var SEEN = 0.4;
  function* binGrid(values, scale2, widths) {
    const widest = Math.max(...widths);
    const highest3 = Math.max(1 / widest, ...values.map((value, bin) => {
      const most = 8 * scale2 + Math.max(value, 0);
      return (most + 8 * Math.sqrt(most) + 8) / widths[bin];
    }));
    let nPoints = Math.ceil(Math.log(highest3 * widest / LEAST3) / SPACING / BLOCK) * BLOCK;
    let spacing = SPACING;
    if (nPoints > MOST4) [nPoints, spacing] = [MOST4, SPACING * nPoints / MOST4];
    const positions = Float64Array.from({ length: nPoints }, (_, i) => Math.log(LEAST3 / widest) + spacing * i);
    const rows = /* @__PURE__ */ new Map();
    const ofBins = [];
    for (let bin = 0; bin < values.length; bin += 1) {
      const name = `${widths[bin]} ${values[bin]}`;
      if (!rows.has(name)) {
        rows.set(name, emissionsOf(positions, spacing, widths[bin], values[bin], 1 / scale2));
        yield;
      }
      ofBins.push(rows.get(name));
    }
    return new BinGrid(positions, spacing, widths, ofBins);
  }
  function emissionsOf(positions, spacing, width2, y, rate2) {
    const nPoints = positions.length;
    const logs = new Float64Array(nPoints + 1);
    const places = new Array(nPoints).fill(null);
    const b = 1 / rate2;
    const half = Math.exp(spacing / 2);
    for (let i = 0; i < nPoints; i += 1) {
      const mean = width2 * Math.exp(positions[i]);
      const wide = Math.sqrt(mean + 2 * b * b) / mean;
      const reach2 = 9 * Math.sqrt(mean + Math.max(y, 0)) + 40 * b + 1;
      const isNear = mean * half > y - reach2 && mean / half < y + reach2;
      const wanted = spacing / (SEEN * wide);
      if (!isNear || wanted <= 1) {
        logs[i] = logEmission(mean, y, rate2);
        continue;
      }
      const number2 = PLACES.find((few) => wanted <= few) ?? PLACES.at(-1);
      const inner = Float64Array.from({ length: number2 }, (_, k) => logEmission(mean * Math.exp(((k + 0.5) / number2 - 0.5) * spacing), y, rate2));
      const peak2 = inner.reduce((most, log) => Math.max(most, log), -Infinity);
      let sum = 0;
      const ends2 = inner.map((log) => sum += Math.exp(log - peak2));
      logs[i] = peak2 + Math.log(sum / number2);
      places[i] = ends2.map((end) => end / sum);
    }
    logs[nPoints] = logEmissionOfNone(y, rate2);
    const largest3 = logs.reduce((most, log) => Math.max(most, log), -Infinity);
    return { emission: logs.map((log) => Math.exp(log - largest3)), largest: largest3, places };
  }
  var BinGrid = class {
    constructor(positions, spacing, widths, bins) {
      Object.assign(this, { positions, spacing, widths, bins });
    }
    get nStates() {
      return this.positions.length + 1;
    }
    /** Draw the expected count of a bin in the interval of its state. */
    mean(bin, state, random) {
      if (state === this.positions.length) return 0;
      let share3 = random();
      const ends2 = this.bins[bin].places[state];
      if (ends2 !== null) share3 = (searched(ends2, random(), 0, ends2.length - 1) + share3) / ends2.length;
      return this.widths[bin] * Math.exp(this.positions[state] + (share3 - 0.5) * this.spacing);
    }
    /** The mean and the mean square of the expected count of a bin about a point. */
    moments(bin, point) {
      const mean = this.widths[bin] * Math.exp(this.positions[point]);
      const ends2 = this.bins[bin].places[point];
      if (ends2 === null) return [mean, mean * mean];
      let [first, second, before2] = [0, 0, 0];
      ends2.forEach((end, k) => {
        const factor = Math.exp(((k + 0.5) / ends2.length - 0.5) * this.spacing);
        first += (end - before2) * factor;
        second += (end - before2) * factor * factor;
        before2 = end;
      });
      return [mean * first, mean * mean * second];
    }
  };
  function searched(ends2, wanted, low, high) {
    let [first, last] = [low, high];
    while (first < last) {
      const middle = first + last >> 1;
      if (ends2[middle] < wanted) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  // src/histogram/walk.js
  var STEPS2 = [0.05, 0.1, 0.2, 0.4, 0.8];
  var JUMP_SCALE = 1.5;
  var KINDS2 = [
    [0.05, 0.98],
    [0.05, 0.998],
    [0.2, 0.98],
    [0.2, 0.998],
    [0.5, 0.5]
  ];
  var NARROW = 0.75;
  var FLOOR = 1e-300;
  var NONE = 1e-22;
  function firstState(nStates) {
    const found = new Float64Array(nStates).fill(0.5 / (nStates - 1));
    found[nStates - 1] = 0.5;
    return found;
  }
  function transition(step, spacing, nStates, stay, jumps) {
    const nPoints = nStates - 1;
    const matrix = new Float64Array(nStates * nStates);
    const ratio2 = step / spacing;
    const normal = new Float64Array(nPoints);
    const jump = new Float64Array(nPoints);
    for (let gap = 0; gap < nPoints; gap += 1) {
      if (ratio2 < NARROW) normal[gap] = gap === 0 ? 1 - ratio2 ** 2 : gap === 1 ? 0.5 * ratio2 ** 2 : 0;
      else normal[gap] = Math.exp(-0.5 * (gap / ratio2) ** 2);
      jump[gap] = Math.exp(-gap * spacing / JUMP_SCALE);
    }
    for (let from = 0; from < nPoints; from += 1) {
      let [ofNormal, ofJump] = [0, 0];
      for (let to = 0; to < nPoints; to += 1) {
        ofNormal += normal[Math.abs(from - to)];
        ofJump += jump[Math.abs(from - to)];
      }
      for (let to = 0; to < nPoints; to += 1) {
        const gap = Math.abs(from - to);
        matrix[from * nStates + to] = stay * ((1 - jumps) * normal[gap] / ofNormal + jumps * jump[gap] / ofJump);
      }
      matrix[from * nStates + nPoints] = 1 - stay;
      matrix[nPoints * nStates + from] = (1 - stay) / nPoints;
    }
    matrix[nPoints * nStates + nPoints] = stay;
    return matrix;
  }
  var Walk = class {
    /**
     * @param {Float64Array[]} emissions Of every bin that is no atom.
     * @param {number} spacing Between the grid's points.
     * @param {number[]} steps
     */
    constructor(emissions, spacing, steps2) {
      this.emissions = emissions;
      this.nStates = emissions[0]?.length ?? 2;
      this.kernels = KINDS2.flatMap(([jumps, stay]) => steps2.map((step) => ({ step, stay, jumps })));
      this.matrix = ({ step, stay, jumps }) => transition(step, spacing, this.nStates, stay, jumps);
      this.logEvidence = null;
    }
    /** Weigh all kernels; yields after each. */
    *weigh() {
      this.logEvidence = [];
      for (const kernel of this.kernels) {
        this.logEvidence.push(this.forward(this.matrix(kernel), null));
        yield;
      }
    }
    /** The posterior probability of every kernel. */
    get weights() {
      const highest3 = Math.max(...this.logEvidence);
      const raw = this.logEvidence.map((log) => Math.exp(log - highest3));
      const total = raw.reduce((sum, one) => sum + one);
      return raw.map((one) => one / total);
    }
    /** Run forward with one kernel: the log evidence; laws of states go where they are kept. */
    forward(matrix, kept2) {
      const { nStates } = this;
      let expected = firstState(nStates);
      let log = 0;
      for (const emission of this.emissions) {
        const alpha = new Float64Array(nStates);
        let mass = 0;
        for (let i = 0; i < nStates; i += 1) mass += alpha[i] = expected[i] * emission[i];
        mass = Math.max(mass, FLOOR);
        for (let i = 0; i < nStates; i += 1) alpha[i] /= mass;
        log += Math.log(mass);
        kept2?.push(alpha);
        expected = multiplied(alpha, matrix, nStates);
      }
      return log;
    }
    /** The posterior of every bin's state over all kernels; yields after each. */
    *marginals() {
      const { nStates, emissions } = this;
      const found = emissions.map(() => new Float64Array(nStates));
      const { weights } = this;
      for (const [number2, kernel] of this.kernels.entries()) {
        if (weights[number2] < NONE) continue;
        const matrix = this.matrix(kernel);
        const alphas = [];
        this.forward(matrix, alphas);
        let backward = new Float64Array(nStates).fill(1);
        for (let bin = emissions.length - 1; bin >= 0; bin -= 1) {
          let total = 0;
          for (let i = 0; i < nStates; i += 1) total += alphas[bin][i] * backward[i];
          for (let i = 0; i < nStates; i += 1) found[bin][i] += weights[number2] * alphas[bin][i] * backward[i] / Math.max(total, FLOOR);
          backward = before(emissions[bin], backward, matrix, nStates);
        }
        yield;
      }
      return found;
    }
    /** Draw states of all bins jointly: a list of paths; yields after each kernel. */
    *drawn(number2, random) {
      const { weights } = this;
      const times3 = weights.map(() => 0);
      for (let draw2 = 0; draw2 < number2; draw2 += 1) times3[picked(weights, random())] += 1;
      const paths = [];
      for (const [at, kernel] of this.kernels.entries()) {
        if (times3[at] === 0) continue;
        const matrix = this.matrix(kernel);
        const alphas = [];
        this.forward(matrix, alphas);
        paths.push(...this.backward(alphas, matrix, times3[at], random));
        yield;
      }
      return paths;
    }
    backward(alphas, matrix, count2, random) {
      const { nStates } = this;
      const last = alphas.length - 1;
      const paths = Array.from({ length: count2 }, () => new Int16Array(alphas.length));
      if (last < 0) return paths;
      const ends2 = cumulated(alphas[last]);
      for (const path of paths) path[last] = searched(ends2, random() * ends2[nStates - 1], 0, nStates - 1);
      for (let bin = last - 1; bin >= 0; bin -= 1) {
        const known = /* @__PURE__ */ new Map();
        for (const path of paths) {
          const after = path[bin + 1];
          if (!known.has(after)) known.set(after, cumulated(alphas[bin].map((weight, from) => weight * matrix[from * nStates + after])));
          const of2 = known.get(after);
          path[bin] = searched(of2, random() * of2[nStates - 1], 0, nStates - 1);
        }
      }
      return paths;
    }
  };
  function multiplied(row4, matrix, n) {
    const found = new Float64Array(n);
    for (let i = 0; i < n; i += 1) {
      const weight = row4[i];
      if (weight < NONE) continue;
      const begin2 = i * n;
      for (let j = 0; j < n; j += 1) found[j] += weight * matrix[begin2 + j];
    }
    return found;
  }
  function before(emission, backward, matrix, n) {
    const both = emission.map((chance2, i) => chance2 * backward[i]);
    const found = new Float64Array(n);
    let largest3 = FLOOR;
    for (let i = 0; i < n; i += 1) {
      let sum = 0;
      for (let j = 0; j < n; j += 1) sum += matrix[i * n + j] * both[j];
      found[i] = sum;
      largest3 = Math.max(largest3, sum);
    }
    return found.map((one) => one / largest3);
  }
  function cumulated(weights) {
    let sum = 0;
    return Float64Array.from(weights, (weight) => sum += weight);
  }
  function picked(weights, uniform) {
    const ends2 = cumulated(weights);
    return searched(ends2, uniform * ends2.at(-1), 0, ends2.length - 1);
  }

  // src/histogram/posterior.js
  var [MOST_WORK2, OF_DRAW] = [15e8, 150];
  function* histogramPosterior(values, scale2, bins, steps2, { draws, most = MOST_WORK2 }) {
    const inner = bins.isAtom.map((isAtom, bin) => isAtom ? 0 : bins.upper[bin] - bins.lower[bin]);
    const widest = Math.max(...inner) || 1;
    const widths = inner.map((width2) => width2 || widest);
    const grid = yield* binGrid(values, scale2, widths);
    const places = values.map((_, bin) => bin);
    const walking = places.filter((bin) => !bins.isAtom[bin]);
    const walk = new Walk(walking.map((bin) => grid.bins[bin].emission), grid.spacing, steps2);
    const ofKernels = 2 * walk.kernels.length * walking.length * grid.nStates ** 2;
    if (ofKernels + OF_DRAW * draws * values.length > most) {
      throw new ReleaseError("resolution", `a histogram of ${values.length} bins would take this reader more than some seconds: Python works it out`);
    }
    yield* walk.weigh();
    const start2 = firstState(grid.nStates);
    const atoms = places.filter((bin) => bins.isAtom[bin]).map((bin) => {
      const weights = grid.bins[bin].emission.map((chance2, state) => chance2 * start2[state]);
      return { bin, weights, total: weights.reduce((sum, one) => sum + one, 0) };
    });
    return new HistogramPosterior({ values, scale: scale2, bins, grid, walk, walking, atoms });
  }
  var HistogramPosterior = class {
    constructor(parts) {
      Object.assign(this, parts);
    }
    /** The log probability of the released counts. */
    get logEvidence() {
      const { logEvidence } = this.walk;
      const highest3 = Math.max(...logEvidence);
      const mean = logEvidence.reduce((sum, log) => sum + Math.exp(log - highest3), 0) / logEvidence.length;
      const divided2 = this.grid.bins.reduce((sum, { largest: largest3 }) => sum + largest3, 0);
      return highest3 + Math.log(mean) + divided2 + this.atoms.reduce((sum, { total }) => sum + Math.log(total), 0);
    }
    /** Means and standard deviations of expected counts, without draws; yields often. */
    *expectedCounts() {
      const { grid } = this;
      const states = new Array(this.values.length);
      const ofWalk = yield* this.walk.marginals();
      this.walking.forEach((bin, at) => states[bin] = ofWalk[at]);
      for (const { bin, weights, total } of this.atoms) states[bin] = weights.map((weight) => weight / total);
      return states.map((law, bin) => {
        let [mean, square] = [0, 0];
        for (let point = 0; point < grid.positions.length; point += 1) {
          const [first, second] = grid.moments(bin, point);
          mean += law[point] * first;
          square += law[point] * second;
        }
        return { mean, sd: Math.sqrt(Math.max(square - mean ** 2, 0)) };
      });
    }
    /** Draw expected counts of all bins jointly, or counts of the rows: a list of draws; yields often. */
    *drawn(number2, { ofRows, random }) {
      const paths = yield* this.walk.drawn(number2, random);
      const ends2 = this.atoms.map(({ weights }) => cumulated(weights));
      const rate2 = 1 / this.scale;
      const drawn = [];
      for (const path of paths) {
        const means = new Float64Array(this.values.length);
        this.walking.forEach((bin, at) => means[bin] = this.grid.mean(bin, path[at], random));
        this.atoms.forEach(({ bin }, at) => {
          const state = searched(ends2[at], random() * ends2[at].at(-1), 0, ends2[at].length - 1);
          means[bin] = this.grid.mean(bin, state, random);
        });
        drawn.push(ofRows ? means.map((mean, bin) => countGiven(mean, this.values[bin], rate2, random())) : means);
        if (drawn.length % 50 === 0) yield;
      }
      return drawn;
    }
  };

  // src/histogram/column.js
  var [LAW, ROWS] = ["law", "rows"];
  var DRAWS = 4e3;
  var PLACE_SD = 0.1;
  var MOST_SHARE = 0.5;
  var STEEPEST = 6;
  var MASS = 0.95;
  function* columnOf(values, scale2, bins, steps2, { of: of2 = LAW, draws = DRAWS, rng = 1, most } = {}) {
    if (of2 !== LAW && of2 !== ROWS) throw new ReleaseError("usage", `of is ${LAW}, what records come from, or ${ROWS}, those counted`);
    if (!(Number.isInteger(draws) && draws >= 2)) throw new ReleaseError("usage", "draws: a whole number from 2 on");
    const posterior = yield* histogramPosterior(values, scale2, bins, steps2, { draws, most });
    const weights = yield* posterior.drawn(draws, { ofRows: of2 === ROWS, random: uniforms(rng) });
    return new Column({ posterior, weights, bins, of: of2 });
  }
  var Column = class {
    constructor({ posterior, weights, bins, of: of2 }) {
      Object.assign(this, { posterior, bins, of: of2 });
      const widths = bins.lower.map((low, bin) => Math.max(bins.upper[bin] - low, 1e-300));
      const whole2 = widths.reduce((sum, width2) => sum + width2, 0);
      this.totals = Float64Array.from(weights, (draw2) => draw2.reduce((sum, one) => sum + one, 0));
      this.shares = weights.map((draw2, i) => this.totals[i] > 0 ? draw2.map((one) => one / this.totals[i]) : widths.map((width2) => width2 / whole2));
      this.upTo = this.shares.map((draw2) => {
        let sum = 0;
        return draw2.map((share3) => sum += share3);
      });
    }
    /** How wide the public bounds are. */
    get span() {
      return this.bins.upper.at(-1) - this.bins.lower[0];
    }
    get logEvidence() {
      return this.posterior.logEvidence;
    }
    /** Means and standard deviations of the expected counts of bins, without draws. */
    expectedCounts() {
      return finished(this.posterior.expectedCounts());
    }
    /** How many records there are; of the law how many are expected. */
    n(mass = MASS) {
      return estimated(this.totals, this.totals, this.totals, mass, Infinity);
    }
    /** The value below which, or at which, a share q lies. */
    quantile(q, mass = MASS) {
      return estimated(...this.quantiles(q), mass, this.span);
    }
    median(mass = MASS) {
      return this.quantile(0.5, mass);
    }
    /** How far the quantile b is above the quantile a. */
    interquantileRange(a = 0.25, b = 0.75, mass = MASS) {
      if (!(a < b)) throw new ReleaseError("usage", "the first level is below the second");
      const [first, firstLow, firstHigh] = this.quantiles(a);
      const [second, secondLow, secondHigh] = this.quantiles(b);
      const less = (one, other) => one.map((number2, i) => number2 - other[i]);
      return estimated(less(second, first), less(secondLow, firstHigh).map((gap) => Math.max(gap, 0)), less(secondHigh, firstLow), mass, this.span);
    }
    /** The share of values up to x; an edge that is no atom counts with the bin above it. */
    cdf(x, mass = MASS) {
      const { isBelow, isAbout, part } = this.divided(x, true);
      return estimated(...this.sharesOf(isBelow, isAbout, part), mass, 1);
    }
    /** The share of values of x or more, as the bounds leave them. */
    tailShare(x, mass = MASS) {
      const { isBelow, isAbout, part } = this.divided(x, false);
      const isAbove = isBelow.map((below, bin) => !below && !isAbout[bin]);
      return estimated(...this.sharesOf(isAbove, isAbout, part.map((one, bin) => isAbout[bin] ? 1 - one : 0)), mass, 1);
    }
    /**
     * The mean of the column as the bounds leave it. With `isEven` it rests on a model of where in bins values are:
     * narrower, and approximate.
     */
    mean(mass = MASS, { isEven = false } = {}) {
      const { lower, upper } = this.bins;
      const places = this.places();
      const weighed3 = (ends2) => Float64Array.from(this.shares, (draw2, i) => dot(draw2, ends2(i)));
      const drawn = weighed3((i) => places[i]);
      const end = (means, ofNone) => means.map((mean, i) => this.totals[i] === 0 ? ofNone : mean);
      const [low, high] = isEven ? [drawn, drawn] : [weighed3(() => lower), weighed3(() => upper)];
      return estimated(drawn, end(low, lower[0]), end(high, upper.at(-1)), mass, this.span);
    }
    /** Gini's index of the column as the bounds leave it; where in bins values are is modelled. */
    gini(mass = MASS) {
      const { lower, upper } = this.bins;
      if (lower[0] < 0) throw new ReleaseError("usage", "Gini's index is of values of 0 or more");
      const places = this.places();
      const drawn = Float64Array.from(this.shares, (draw2, i) => {
        let [upTo, between, within2] = [0, 0, 0];
        const part = draw2.map((share3, bin) => share3 * places[i][bin]);
        draw2.forEach((share3, bin) => {
          upTo += part[bin];
          between += share3 * (2 * upTo - part[bin]);
          within2 += share3 * share3 * (upper[bin] - lower[bin]);
        });
        const total = Math.max(upTo, 1e-300);
        return 1 - between / total + within2 / (6 * total);
      });
      return estimated(drawn, drawn, drawn, mass, 1);
    }
    /** The density of every bin, per unit of the column; of atoms the share. */
    density(mass = MASS) {
      const widths = this.bins.lower.map((low, bin) => this.bins.upper[bin] - low || 1);
      return this.ofBins(this.shares, mass).map((one, bin) => mapped(one, (number2) => number2 / widths[bin]));
    }
    /** The share up to the upper end of every bin. */
    distributionFunction(mass = MASS) {
      return this.ofBins(this.upTo, mass);
    }
    ofBins(drawn, mass) {
      return Array.from(this.bins.lower, (_, bin) => {
        const of2 = Float64Array.from(drawn, (draw2) => draw2[bin]);
        return estimated(of2, of2, of2, mass, Infinity);
      });
    }
    /** Draws of a quantile, evenly in its bin, and what they lie between. */
    quantiles(q) {
      if (!(q > 0 && q < 1)) throw new ReleaseError("usage", "the level of a quantile lies between 0 and 1");
      const { lower, upper } = this.bins;
      const found = [0, 1, 2].map(() => new Float64Array(this.shares.length));
      this.upTo.forEach((upTo, draw2) => {
        let bin = 0;
        while (bin < upTo.length - 1 && upTo[bin] < q) bin += 1;
        const inside2 = Math.min(Math.max(1 - (upTo[bin] - q) / Math.max(this.shares[draw2][bin], 1e-300), 0), 1);
        const isEmpty = this.totals[draw2] === 0;
        found[0][draw2] = lower[bin] + inside2 * (upper[bin] - lower[bin]);
        found[1][draw2] = isEmpty ? lower[0] : lower[bin];
        found[2][draw2] = isEmpty ? upper.at(-1) : upper[bin];
      });
      return found;
    }
    /** Which bins are below x, or up to it where atoms count; which hold it; what part of these is below. */
    divided(x, withAtom) {
      if (typeof x !== "number" || !Number.isFinite(x)) throw new ReleaseError("usage", "x is a finite number");
      const { lower, upper } = this.bins;
      const last = lower.length - 1;
      const isBelow = Array.from(upper, (high, bin) => high < x || high === x && (withAtom || !(lower[bin] === high || bin === last)));
      const isAbout = Array.from(lower, (low, bin) => low < x && x <= upper[bin] && !isBelow[bin]);
      const part = isAbout.map((about, bin) => about ? (x - lower[bin]) / (upper[bin] - lower[bin] || 1) : 0);
      return { isBelow, isAbout, part };
    }
    /** Draws of the share of bins with a part of others, and what it lies between. */
    sharesOf(bins, about, part) {
      const found = [0, 1, 2].map(() => new Float64Array(this.shares.length));
      this.shares.forEach((draw2, i) => {
        let [low, inside2, others2] = [0, 0, 0];
        draw2.forEach((share3, bin) => {
          if (bins[bin]) low += share3;
          if (about[bin]) others2 += share3;
          inside2 += share3 * part[bin];
        });
        [low + inside2, low, low + others2].forEach((share3, which) => found[which][i] = Math.min(share3, 1));
      });
      return found;
    }
    /** Draws of the mean of every bin's values: where a density that rises or falls evenly between bins has it. */
    places() {
      const { lower, upper } = this.bins;
      const inner = Array.from(lower, (_, bin) => bin).filter((bin) => upper[bin] > lower[bin]);
      const middles = inner.map((bin) => (lower[bin] + upper[bin]) / 2);
      const normal = normals(generator("places"));
      return this.shares.map((draw2) => {
        const found = Float64Array.from(lower);
        const logs = inner.map((bin) => Math.log(draw2[bin] / (upper[bin] - lower[bin])));
        const rises = inner.slice(1).map((_, at) => {
          const rise = (logs[at + 1] - logs[at]) / (middles[at + 1] - middles[at]);
          return Number.isFinite(rise) ? rise : 0;
        });
        inner.forEach((bin, at) => {
          const width2 = upper[bin] - lower[bin];
          const known = [rises[at - 1], rises[at]].filter((rise) => rise !== void 0 && rise !== 0);
          const slope2 = known.reduce((sum, rise) => sum + rise, 0) / Math.max(known.length, 1);
          const t = Math.min(Math.max(slope2 * width2, -STEEPEST), STEEPEST);
          const place = Math.abs(t) < 1e-3 ? 0.5 : 1 / -Math.expm1(-t) - 1 / t;
          found[bin] = lower[bin] + width2 * Math.min(Math.max(place + PLACE_SD * normal(), 0), 1);
        });
        return found;
      });
    }
  };
  function dot(one, other) {
    let sum = 0;
    for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
    return sum;
  }
  function mapped(estimate2, of2) {
    return { ...estimate2, mean: of2(estimate2.mean), median: of2(estimate2.median), lower: of2(estimate2.lower), upper: of2(estimate2.upper) };
  }
  function estimated(drawn, low, high, mass, span) {
    if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
    const last = drawn.length - 1;
    const sorted = Float64Array.from(drawn).sort();
    const inOrder = (ends2) => ends2 === drawn ? sorted : Float64Array.from(ends2).sort();
    const lower = inOrder(low)[Math.floor(last * (1 - mass) / 2)];
    const upper = inOrder(high)[Math.ceil(last * (1 + mass) / 2)];
    const isRefused = upper - lower > MOST_SHARE * span;
    const median = 0.5 * (sorted[last >> 1] + sorted[last + 1 >> 1]);
    const mean = drawn.reduce((sum, one) => sum + one, 0) / drawn.length;
    return { mean: isRefused ? NaN : mean, median: isRefused ? NaN : median, lower, upper, mass, isRefused };
  }

  // src/histogram/prior.js
  var MOST_STEPS3 = 12;
  var DEFAULT_WALK = `BinWalk(${STEPS2.join(", ")})`;
  function stepsOf(text) {
    if (text === void 0 || text === "") return STEPS2;
    const inner = /^\s*BinWalk\(([^()]*)\)\s*$/.exec(text)?.[1];
    const steps2 = inner?.split(",").map((part) => part.trim() === "" ? NaN : Number(part)) ?? [];
    const isWalk = steps2.length > 0 && steps2.length <= MOST_STEPS3 && steps2.every((step) => step > 0 && step < Infinity);
    if (!isWalk) throw new ReleaseError("prior", "the prior of a histogram is a walk with steps above 0, as BinWalk(0.1, 0.4)");
    return steps2;
  }

  // src/tree/unit.js
  var STEPS_PER_SCALE = 16;
  var SUMMED = ["binomial", "poisson", "geometric", "negative_binomial", "exponential"];
  function totalStep({ family, components, quantities }) {
    if (!SUMMED.includes(family)) return null;
    const { coefficients, public_n_coefficient: ofPublicN } = quantities.find(({ name }) => name === "total");
    const names = Object.keys(coefficients);
    return names.length === 1 && names[0] === components[0] && ofPublicN === "0" ? parseRational(coefficients[components[0]]) : null;
  }
  var TreeUnit = class _TreeUnit {
    /** @param {{steps?: number, step?: {n: bigint, d: bigint}, upper?: string | null}} unit Of counts the defaults. */
    constructor({ steps: steps2 = 1, step = rational(1n), upper = null } = {}) {
      Object.assign(this, { steps: steps2, upper });
      this.step = toNumber(step);
      this.size = toNumber(multiply(step, rational(BigInt(steps2))));
    }
    /** The unit of a total whose least noisy level has this scale, in steps of the lattice. */
    static ofTotal(step, upper, leastScale2) {
      const steps2 = Math.max(1, Math.floor(leastScale2 / STEPS_PER_SCALE));
      return new _TreeUnit({ steps: steps2 - (steps2 + 1) % 2, step, upper });
    }
    /** What nodes have: `records`, or a `total`. */
    get isTotal() {
      return this.upper !== null;
    }
    /** What has to be said of totals. */
    get notes() {
      if (!this.isTotal) return [];
      const clipped2 = `Totals are of values clipped to 0..${this.upper}.`;
      if (this.steps === 1) return [clipped2];
      const shown2 = Number.isInteger(this.size) ? String(this.size) : String(Number(this.size.toPrecision(4)));
      return [
        clipped2,
        `Totals and released values are rounded to steps of ${shown2}, at most 1/${STEPS_PER_SCALE} of the noise's scale; intervals are half a step wider on either side.`
      ];
    }
    /** A released value of the lattice in whole numbers of the tree, rounded; never -0. */
    whole(released) {
      return Math.round(released / this.steps) + 0;
    }
    /** Whole numbers, or numbers between them, in the column's unit. */
    value(whole2) {
      return whole2 * this.size;
    }
    /** The ends of an interval in the column's unit, with all that rounds to them. */
    ends({ lower, upper }) {
      const half = Math.floor(this.steps / 2);
      return { lower: Math.max(this.steps * lower - half, 0) * this.step, upper: (this.steps * upper + half) * this.step };
    }
  };

  // src/tree/count_tree.js
  var MOST5 = 2 ** 52;
  var DRAWS2 = 2e3;
  var MASS2 = 0.95;
  var WORTH_SAYING = 0.01;
  var ROUNDED2 = 1e-6;
  function* countTree(tree, released, components, { population = DEFAULT_POPULATION, sizes, most, unit = new TreeUnit() } = {}) {
    const law = namedPopulation(population);
    checkSizes(sizes, tree);
    const posteriors = {};
    for (const [at, component2] of components.entries()) {
      const values = released.map((level) => level.values[at]);
      if (values.some((some) => some.some((value) => Math.abs(value) > MOST5))) {
        throw new ReleaseError("statistic", "the tree has a value beyond 2^52, where floats are not whole");
      }
      const noisy = { parents: tree.parents, values, scales: released.map(({ scale: scale2 }) => scale2), sizes: sizes ?? null };
      posteriors[component2] = yield* treePosterior(noisy, law, most);
      if (posteriors[component2].rounding > ROUNDED2) {
        throw new ReleaseError("resolution", `the released levels of ${shown(component2)} contradict each other further than noise explains: no answer would be right`);
      }
    }
    return new CountTree(tree, components, posteriors, law.name, unit);
  }
  function checkSizes(sizes, { keys }) {
    if (sizes === void 0) return;
    const isFit = Array.isArray(sizes) && sizes.length === keys.at(-1).length && sizes.every((size) => size > 0 && size < Infinity);
    if (!isFit) throw new ReleaseError("usage", `sizes are of all ${keys.at(-1).length} leaves, and above 0`);
  }
  var CountTree = class {
    constructor({ levels, keys, parents }, components, posteriors, population, unit) {
      Object.assign(this, { levels, keys, parents, components, posteriors, population, unit });
    }
    get logEvidence() {
      return this.components.reduce((sum, component2) => sum + this.posteriors[component2].logEvidence, 0);
    }
    /** What a chance may be off by, about. */
    get error() {
      return Math.max(...this.components.map((component2) => this.posteriors[component2].error));
    }
    /** What has to be said beside the numbers. */
    get notes() {
      const notes = [...this.unit.notes];
      const posteriors = this.components.map((component2) => this.posteriors[component2]);
      const byPoints = Math.max(...posteriors.map((posterior) => posterior.hyperparameters.error));
      if (byPoints > WORTH_SAYING) {
        notes.push(`Chances may be off by up to ${Math.min(byPoints, 1).toPrecision(1)}: the population's mean and spread are summed over points. Compare the population reciprocal, which has neither.`);
      }
      if (posteriors.some((posterior) => posterior.cut > WORTH_SAYING)) {
        notes.push("A level has next to no noise: its released values are taken as they are, and no others were weighed.");
      }
      return notes;
    }
    /**
     * A row for each node: component, level, key, mean, sd, and ends of the central interval of a mass; `released`, and
     * `below`, what was released right below it added up; null of leaves.
     */
    table(mass = MASS2, { level, component: component2 } = {}) {
      const levels = level === void 0 ? this.levels.map((_, place) => place) : [this.place(level)];
      const wanted = component2 === void 0 ? this.components : [this.component(component2)];
      return wanted.flatMap((name) => levels.flatMap((place) => this.keys[place].map((key, node) => ({
        component: name,
        level: this.levels[place],
        key,
        ...this.summary(name, place, node, mass),
        ...this.released(name, place, node)
      }))));
    }
    /** Mean, sd and ends of one node. */
    summary(component2, place, node, mass) {
      checkShare(mass);
      const { mean, sd, ...ends2 } = this.posteriors[component2].summary(place, node, mass);
      return { mean: this.unit.value(mean), sd: this.unit.value(sd), ...this.unit.ends(ends2) };
    }
    /** What was released of a node, and what was released right below it, added up; of totals rounded to the unit. */
    released(component2, place, node) {
      const { tree, families } = this.posteriors[component2].passer;
      const below = place + 1 < this.levels.length ? tree.values[place + 1] : null;
      return {
        released: this.unit.value(tree.values[place][node]),
        below: below === null ? null : this.unit.value(families[place][node].reduce((sum, child) => sum + below[child], 0))
      };
    }
    /** The law of one count, or total: chances of `low`, `low + step` and on. */
    counts(level, key, component2) {
      const place = this.place(level);
      const { low, weights } = this.posteriors[this.component(component2)].marginals[place][this.node(place, key)];
      return { low: this.unit.value(low), step: this.unit.size, chances: Float64Array.from(weights) };
    }
    /** Joint draws: a list of draws, each by level an array in the order of its keys. They add up in every draw. */
    draws(number2, { component: component2, rng = 1 } = {}) {
      return this.drawn(this.component(component2), checkedDraws(number2, 1), uniforms(rng)).map((levels) => Object.fromEntries(this.levels.map((level, place) => [level, levels[place].map((whole2) => this.unit.value(whole2))])));
    }
    /** What any nodes hold together, by level their keys, each leaf below them once; from joint draws. */
    rollUp(nodes, { mass = MASS2, draws = DRAWS2, rng = 1 } = {}) {
      const leaves = this.leavesBelow(nodes);
      const random = uniforms(rng);
      return this.components.map((component2) => {
        const sums = this.drawn(component2, checkedDraws(draws), random).map((levels) => this.unit.value(leaves.reduce((sum, leaf) => sum + levels.at(-1)[leaf], 0)));
        return { component: component2, ...summaryOfDraws(sums, mass) };
      });
    }
    /** Each node's share of the node that it is below, from joint draws: rows as of `table`. */
    share(level, { above, mass = MASS2, draws = DRAWS2, component: component2, rng = 1 } = {}) {
      const place = this.place(level);
      const of2 = above === void 0 ? place - 1 : this.place(above);
      if (of2 < 0 || of2 >= place) throw new ReleaseError("usage", `a share is of a level above ${shown(level)}`);
      const wanted = component2 === void 0 ? this.components : [this.component(component2)];
      const ancestors = this.keys[place].map((_, node) => this.ancestor(node, place, of2));
      const random = uniforms(rng);
      return wanted.flatMap((name) => {
        const drawn = this.drawn(name, checkedDraws(draws), random);
        return this.keys[place].map((key, node) => {
          const shares2 = drawn.map((levels) => levels[place][node] / levels[of2][ancestors[node]]);
          return { component: name, level, key, ...summaryOfDraws(shares2, mass) };
        });
      });
    }
    /** The part that a component has in several, by default in all, from joint draws: rows as of `table`. */
    ratio(component2, level, { of: of2 = this.components, mass = MASS2, draws = DRAWS2, rng = 1 } = {}) {
      const place = this.place(level);
      if (!(Array.isArray(of2) && of2.length > 0)) throw new ReleaseError("usage", "a ratio is of a list of components, one at least");
      const random = uniforms(rng);
      const names = [.../* @__PURE__ */ new Set([this.component(component2), ...of2.map((name) => this.component(name))])];
      const drawn = new Map(names.map((name) => [name, this.drawn(name, checkedDraws(draws), random)]));
      return this.keys[place].map((key, node) => {
        const at = (name, draw2) => drawn.get(name)[draw2][place][node];
        const parts = Array.from({ length: draws }, (_, draw2) => at(component2, draw2) / of2.reduce((sum, name) => sum + at(name, draw2), 0));
        return { component: component2, level, key, ...summaryOfDraws(parts, mass) };
      });
    }
    /**
     * How probably each of a level's counts is among the `within` highest, from joint draws. Of equal counts one is as
     * probably the higher as the other.
     */
    rankProbabilities(level, { within: within2 = 1, component: component2, draws = DRAWS2, rng = 1 } = {}) {
      const place = this.place(level);
      const number2 = this.keys[place].length;
      if (!(Number.isInteger(within2) && within2 >= 1 && within2 <= number2)) {
        throw new ReleaseError("usage", `within is from 1 to the ${number2} nodes of ${shown(level)}`);
      }
      const random = uniforms(rng);
      const times3 = new Float64Array(number2);
      for (const levels of this.drawn(this.component(component2), checkedDraws(draws, 1), random)) {
        const counts = Array.from(levels[place], (count2, node) => ({ count: count2, tie: random(), node }));
        counts.sort((one, other) => other.count - one.count || other.tie - one.tie);
        for (const { node } of counts.slice(0, within2)) times3[node] += 1;
      }
      return this.keys[place].map((key, node) => ({ level, key, probability: times3[node] / draws }));
    }
    /** Joint draws of whole numbers: of each the levels' arrays. */
    drawn(component2, number2, random) {
      return finished(this.posteriors[component2].draws(number2, random));
    }
    /** The node of the level `of` that a node is below. */
    ancestor(node, place, of2) {
      let above = node;
      for (let at = place; at > of2; at -= 1) above = this.parents[at - 1][above];
      return above;
    }
    /** Leaves that are below one of some nodes. */
    leavesBelow(nodes) {
      const last = this.levels.length - 1;
      const isBelow = /* @__PURE__ */ new Set();
      for (const [level, keys] of Object.entries(nodes ?? {})) {
        const place = this.place(level);
        if (!Array.isArray(keys)) throw new ReleaseError("usage", `a roll-up is of a list of keys by level: of ${shown(level)} there is none`);
        const wanted = new Set(keys.map((key) => this.node(place, key)));
        this.keys[last].forEach((_, leaf) => wanted.has(this.ancestor(leaf, last, place)) && isBelow.add(leaf));
      }
      if (isBelow.size === 0) throw new ReleaseError("usage", "a roll-up is of one node at least: name a level and its keys");
      return [...isBelow];
    }
    place(level) {
      const place = this.levels.indexOf(level);
      if (place < 0) throw new ReleaseError("usage", `the tree has no level ${shown(level)}: it has ${this.levels.map(shown).join(", ")}`);
      return place;
    }
    node(place, key) {
      const node = this.keys[place].indexOf(String(key));
      if (node < 0) throw new ReleaseError("cell", `the level ${shown(this.levels[place])} has no key ${shown(key)}`);
      return node;
    }
    component(name) {
      if (name === void 0 && this.components.length === 1) return this.components[0];
      if (!this.components.includes(name)) {
        throw new ReleaseError("usage", `name one of the tree's components: ${this.components.slice(0, 8).map(shown).join(", ")}`);
      }
      return name;
    }
  };
  function checkShare(mass) {
    if (!(mass > 0 && mass < 1)) throw new ReleaseError("usage", "a mass lies between 0 and 1");
  }
  function checkedDraws(draws, least = 2) {
    if (!(Number.isInteger(draws) && draws >= least)) throw new ReleaseError("usage", `draws: a whole number from ${least} on`);
    return draws;
  }
  function summaryOfDraws(draws, mass) {
    checkShare(mass);
    const known = Float64Array.from(draws.filter((draw2) => !Number.isNaN(draw2))).sort();
    if (known.length === 0) return { mean: NaN, sd: NaN, lower: NaN, upper: NaN };
    const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
    const sd = Math.sqrt(known.reduce((sum, one) => sum + (one - mean) ** 2, 0) / known.length);
    const at = (share3) => known[Math.max(Math.ceil(share3 * known.length - 1e-9) - 1, 0)];
    return { mean, sd, lower: at(0.5 * (1 - mass)), upper: at(0.5 * (1 + mass)) };
  }

  // src/tree/key_tree.js
  function keyTree(plan, name, groups) {
    const levels = plan.hierarchies[name];
    const keys = groups.map((group3) => group3.keys.map(String));
    const parents = [];
    const refuse = (level) => {
      throw new ReleaseError("manifest", `the manifest is corrupt: hierarchies.${shown(name)}: keys of ${shown(level)} do not nest`);
    };
    for (let level = levels.length - 1; level > 0; level -= 1) {
      const above = levels[level - 1];
      const of2 = Object.hasOwn(plan.derived, above) ? plan.derived[above] : null;
      const targets = groups[level - 1].kind === "period" ? keys[level].map((key) => label(periodStart(key, groups[level].every), groups[level - 1].every)) : of2 !== null && of2.map !== void 0 ? mapped2(of2, levels, keys, parents, level) : keys[level].map(() => keys[0][0]);
      if (targets === null) refuse(above);
      const place = new Map(keys[level - 1].map((key, node) => [key, node]));
      const found = targets.map((key) => place.get(String(key)));
      const isTree = found.every((node) => node !== void 0) && new Set(found).size === keys[level - 1].length;
      if (!isTree) refuse(above);
      parents.unshift(found);
    }
    if (keys[0].length !== 1) refuse(levels[0]);
    return { levels, keys, parents };
  }
  function mapped2(of2, levels, keys, parents, level) {
    const source = levels.indexOf(of2.column);
    if (source < level) return null;
    const targets = new Array(keys[level].length).fill(null);
    for (let key = 0; key < keys[source].length; key += 1) {
      let node = key;
      for (let at = source; at > level; at -= 1) node = parents[at - level - 1][node];
      const target = Object.hasOwn(of2.map, keys[source][key]) ? of2.map[keys[source][key]] : null;
      if (target === null || targets[node] !== null && targets[node] !== target) return null;
      targets[node] = target;
    }
    return targets.includes(null) ? null : targets;
  }

  // src/tree/released_tree.js
  var COUNTED = ["bernoulli", "categorical"];
  var TOTAL = "total";
  var MOST_VALUE = 2n ** 63n - 1n;
  function componentsOf(entry) {
    if (COUNTED.includes(entry.family)) return entry.components;
    return totalStep(entry) === null ? null : [TOTAL];
  }
  function treesOf(release) {
    const { hierarchies = {} } = release.manifest.plan;
    return Object.entries(hierarchies).map(([name, levels]) => {
      const { groups } = leavesOf(release, name, levels);
      return { name, levels: [...levels], beside: groups.filter(({ column }) => column !== levels.at(-1)).map(({ column }) => column) };
    });
  }
  function leavesOf(release, name, levels) {
    const entry = release.manifest.statistics.find((one) => one.name === `${name}.${levels.at(-1)}`);
    return { entry, groups: entry.groups ?? release.manifest.groups };
  }
  function* releasedTree(release, name, { where = {}, ...options } = {}) {
    const trees = treesOf(release);
    const tree = trees.find((one) => one.name === name);
    if (tree === void 0) {
      const known = trees.length === 0 ? "it has none" : `its trees are ${trees.map((one) => shown(one.name)).join(", ")}`;
      throw new ReleaseError("statistic", `the release has no tree ${shown(name)}: ${known}`);
    }
    const { levels, beside: beside2 } = tree;
    const stray = Object.keys(where).find((column) => !beside2.includes(column));
    if (stray !== void 0) throw new ReleaseError("cell", `${shown(stray)} is no group beside the tree's: a tree has all of its nodes`);
    const open = beside2.find((column) => !Object.hasOwn(where, column));
    if (open !== void 0) throw new ReleaseError("cell", `there is a tree for each key of ${shown(open)}: name one in where`);
    const entries = levels.map((level) => release.noisy(`${name}.${level}`));
    const groups = entries.map((entry) => groupOf(release, entry, beside2));
    const keys = keyTree(release.manifest.plan, name, groups);
    entries.forEach((entry) => checkAdding(entry, entries[0]));
    const components = componentsOf(entries[0]);
    const unit = unitOf(entries);
    const released = entries.map((entry) => {
      const positions = release.selected(where, entry.name);
      const values = release.values.get(entry.name);
      const width2 = entry.components.length;
      return {
        name: entry.name,
        values: components.map((_, at) => Float64Array.from(positions, (cell) => wholeOf(values[cell * width2 + at], unit))),
        scale: scaleOf2(entry) / unit.steps
      };
    });
    return yield* countTree(keys, released, components, { ...options, unit });
  }
  function scaleOf2({ scale: scale2 }) {
    return toNumber(parseRational(scale2));
  }
  function unitOf(entries) {
    const [{ parameters }] = entries;
    const step = totalStep(entries[0]);
    return step === null ? new TreeUnit() : TreeUnit.ofTotal(step, parameters.upper, Math.min(...entries.map(scaleOf2)));
  }
  function wholeOf(value, unit) {
    if (value >= MOST_VALUE || value <= -MOST_VALUE) {
      throw new ReleaseError("statistic", "a value of the tree is at an end of its type: there were more records than could be counted");
    }
    return unit.whole(Number(value));
  }
  function groupOf(release, entry, beside2) {
    const stated = entry.groups ?? release.manifest.groups;
    const own = stated.filter(({ column }) => !beside2.includes(column));
    if (own.length !== 1) throw new ReleaseError("manifest", `the manifest is corrupt: ${shown(entry.name)} is no level of a tree`);
    const { keys } = release.groupsOf(entry.name).find(({ column }) => column === own[0].column);
    return { ...own[0], keys };
  }
  function checkAdding(entry, first) {
    const { name, family, components, parameters, design, within_unit: within2, count_clipped: counted } = entry;
    if (componentsOf(entry) === null) {
      throw new ReleaseError("statistic", `${shown(name)} is ${shown(family)}, and neither counts records nor has totals from 0 on: a tree is of one of ${[...COUNTED, ...SUMMED].join(", ")}`);
    }
    const isMore = within2 !== void 0 || counted !== void 0 && COUNTED.includes(family);
    const isLike = family === first.family && design === first.design && components.join("\n") === first.components.join("\n") && JSON.stringify(parameters) === JSON.stringify(first.parameters);
    if (isMore || !isLike) {
      throw new ReleaseError("statistic", `${shown(name)} does not have what the other levels have: a tree is of the same counts, or totals, at all levels`);
    }
  }

  // src/release.js
  var Release = class {
    constructor(manifest, files, signatureStatus, wanted, withdrawal, about) {
      this.manifest = manifest;
      this.about = about;
      this.signatureStatus = signatureStatus;
      this.withdrawal = withdrawal;
      this.groups = groupsOf(manifest.groups);
      this.groupsByStatistic = /* @__PURE__ */ new Map();
      this.nCells = manifest.cells;
      this.values = /* @__PURE__ */ new Map();
      this.kept = new KeptWork();
      this.keptOfAll = new KeptWork(12 * MOST_MOVED);
      manifest.statistics.forEach((statistic, i) => {
        if (!wanted.has(statistic.name)) return;
        const groups = statistic.groups === void 0 ? this.groups : groupsOf(statistic.groups);
        this.groupsByStatistic.set(statistic.name, groups);
        this.values.set(statistic.name, readValues(files.get(manifest.files[i].path), statistic, groups));
      });
    }
    get name() {
      return this.manifest.name;
    }
    get releaseId() {
      return this.manifest.release_id;
    }
    /** The statistics, in declared order. */
    get statistics() {
      return this.manifest.statistics.map((entry) => ({
        name: entry.name,
        family: entry.family,
        columns: entry.columns,
        components: entry.components ?? [],
        epsilon: entry.epsilon,
        rho: entry.rho,
        mechanism: entry.mechanism,
        scale: entry.scale,
        rowsOf: entry.rows_of,
        isComputedAgain: isComputedAgain(entry) && !isSampled(entry),
        hasPosterior: hasPosterior(entry)
      }));
    }
    /** The groups of a statistic; without one, of those that state none of their own. */
    groupsOf(statistic) {
      return statistic === void 0 ? this.groups : this.groupsByStatistic.get(this.entry(statistic).name);
    }
    /** The cells: one object of group keys each, in order; one empty object where there are no groups. */
    cells(statistic) {
      const groups = this.groupsOf(statistic);
      return Array.from({ length: cellCount(groups) }, (_, index) => cellAt(groups, index));
    }
    /**
     * Estimates of a statistic's quantities with the standard deviations of their noise.
     *
     * @param {string} statistic
     * @param {Record<string, string | number>} [where] Keys that cells must have.
     */
    table(statistic, where = {}) {
      const entry = this.noisy(statistic);
      const values = this.values.get(statistic);
      const width2 = entry.components.length;
      const ofCone = entry.cone_noise;
      const noise = ofCone === void 0 ? discreteLaplaceSd(toNumber(parseRational(entry.scale))) : null;
      const rows = [];
      const maps = entry.quantities.map((quantity2) => {
        const map = mapOf(quantity2, entry.components);
        const weights = map.weights.map(([component2, weight]) => [component2, toNumber(weight)]);
        return { quantity: quantity2, ...map, noiseSd: ofCone === void 0 ? noise * map.norm : Math.sqrt(coneVariance(ofCone, weights)) };
      });
      const groups = this.groupsOf(statistic);
      for (const index of this.selected(where, statistic)) {
        for (const { quantity: quantity2, weights, ofPublicN, noiseSd } of maps) {
          let [numerator, denominator] = [ofPublicN.n * BigInt(this.manifest.n ?? 0), ofPublicN.d];
          for (const [component2, weight] of weights) {
            const product = weight.n * values[index * width2 + component2];
            numerator = numerator * weight.d + product * denominator;
            denominator *= weight.d;
          }
          rows.push({
            cell: cellAt(groups, index),
            quantity: quantity2.name,
            category: quantity2.category,
            component: quantity2.component ?? null,
            labels: quantity2.labels ?? [],
            estimate: toNumber({ n: numerator, d: denominator }),
            noiseSd
          });
        }
      }
      return rows;
    }
    /**
     * The exact posterior of one cell.
     *
     * @param {string} statistic
     * @param {{prior?: string, nPrior?: string | number, where?: Record<string, string | number>,
     *   method?: string, clipping?: string}} [options] By default the family's prior, the release's prior of N,
     *   and `noise-aware`.
     */
    posterior(statistic, options = {}) {
      const entry = this.noisy(statistic);
      const method = options.method ?? NOISE_AWARE;
      if (method !== NOISE_AWARE && method !== PLUG_IN) {
        throw new ReleaseError("method", `there is no method ${shown(method)}: choose ${NOISE_AWARE} or ${PLUG_IN}`);
      }
      const selected = this.selected(options.where ?? {}, statistic);
      if (selected.length !== 1) {
        throw new ReleaseError("cell", `${selected.length} cells fit: name the key of every group in where`);
      }
      if (!hasPosterior(entry)) {
        const alike = entry.within_unit === void 0 ? "" : " whose rows of a unit are alike";
        const ofNoise = entry.mechanism === CONE_NOISE ? " with noise on a cone" : alike;
        const why = entry.count_clipped === void 0 ? ofNoise : " with counts of what clipping moved";
        throw new ReleaseError("statistic", `${shown(statistic)} is ${shown(entry.family)}${why}: this reader has no posterior of it; a published one can be read`);
      }
      const compute = entry.family === "categorical" ? countsPosterior : oneSumPosterior;
      const width2 = entry.components.length;
      const values = [...this.values.get(statistic).slice(selected[0] * width2, (selected[0] + 1) * width2)];
      const { n, max_total_rows: maxTotalRows } = this.manifest;
      const found = compute(entry, values, { n, maxTotalRows }, {
        ...options,
        method,
        labels: this.about.statistics?.[statistic]?.values,
        kept: { of: (key, make) => this.kept.of(`${selected[0]} ${key} ${statistic}`, make) }
      });
      this.kept.finish();
      return found;
    }
    /**
     * The same, worked out in slices of some milliseconds, so that a page stays alive meanwhile.
     *
     * @param {string} statistic
     * @param {object} options As of `posterior`, and `parameters`: those that are worked out, all by default;
     *   others are when they are asked for, in one go.
     * @param {() => Promise<void>} [pause] Awaited between slices; what it throws ends the work.
     */
    posteriorInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
      const { parameters, ...asked } = options;
      return inSlices(() => {
        const found = this.posterior(statistic, asked);
        for (const parameter of parameters ?? found.parameters) found.marginal(parameter);
        return found;
      }, pause);
    }
    /**
     * Whether all cells together contradict a prior that no cell alone may contradict, as Python judges it; null where
     * this reader does not judge. The default prior is what others are compared with, and is never contradicted.
     *
     * @param {string} statistic
     * @param {{prior?: string, nPrior?: string | number, most?: number}} [options] `most`: cells that are compared.
     */
    conflict(statistic, options = {}) {
      const entry = this.noisy(statistic);
      if (!hasPosterior(entry) || !Object.hasOwn(ONE_SUM, entry.family)) return null;
      const width2 = entry.components.length;
      const valuesOf = (cell) => [...this.values.get(statistic).slice(cell * width2, (cell + 1) * width2)];
      const keptOf = (cell) => ({
        of: (key, make) => this.keptOfAll.of(`${cell} ${key} ${statistic}`, make),
        finish: () => this.keptOfAll.finish()
      });
      const { n, max_total_rows: maxTotalRows } = this.manifest;
      return oneSumTogether(entry, valuesOf, cellCount(this.groupsOf(statistic)), { n, maxTotalRows }, options, keptOf);
    }
    /** The same in slices, as `posteriorInSlices`. */
    conflictInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
      return inSlices(() => this.conflict(statistic, options), pause);
    }
    /** Trees of counts or totals: name, levels from the root on, and the groups beside them, of which `where` names a key. */
    get trees() {
      return treesOf(this);
    }
    /**
     * The joint posterior of the counts at all nodes of a tree, or of totals in the column's unit: they add up.
     *
     * @param {string} name As the spec called the statistic that has a hierarchy.
     * @param {{where?: Record<string, string | number>, population?: string, sizes?: number[], most?: number}} [options]
     *   `sizes`: known sizes of the leaves; `most`: multiplications, above which a tree is refused, by default some
     *   seconds of them.
     */
    tree(name, options = {}) {
      return finished(releasedTree(this, name, options));
    }
    /** The same in slices, as `posteriorInSlices`. */
    treeInSlices(name, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
      const resumed = new Resumed(releasedTree(this, name, options));
      return inSlices(() => resumed.value, pause);
    }
    /**
     * The column behind a histogram, in one cell: its quantiles, tail shares, mean and density.
     *
     * @param {string} statistic
     * @param {{where?: Record<string, string | number>, of?: "law" | "rows", prior?: string, draws?: number,
     *   rng?: string | number | (() => number), most?: number}} [options]
     */
    column(statistic, options = {}) {
      return finished(this.columnSteps(statistic, options));
    }
    /** The same in slices, as `posteriorInSlices`. */
    columnInSlices(statistic, options = {}, pause = () => new Promise((resume) => setTimeout(resume))) {
      const resumed = new Resumed(this.columnSteps(statistic, options));
      return inSlices(() => resumed.value, pause);
    }
    columnSteps(statistic, { where = {}, prior, ...options }) {
      const entry = this.noisy(statistic);
      if (entry.family !== "histogram") throw new ReleaseError("statistic", `${shown(statistic)} is ${shown(entry.family)}: a column's quantiles are of histograms`);
      const selected = this.selected(where, statistic);
      if (selected.length !== 1) throw new ReleaseError("cell", `${selected.length} cells fit: name the key of every group in where`);
      const width2 = entry.components.length;
      const values = Array.from(this.values.get(statistic).slice(selected[0] * width2, (selected[0] + 1) * width2), Number);
      return columnOf(values, toNumber(parseRational(entry.scale)), binsOf(entry.parameters), stepsOf(prior), options);
    }
    /**
     * The draws of a posterior sample, in the parameter's unit: one row for each cell and draw. Of a drawn quantile
     * the lower and the upper end of the bin, in the column's unit.
     *
     * @param {string} statistic
     * @param {Record<string, string | number>} [where] Keys that cells must have.
     */
    samples(statistic, where = {}) {
      const entry = this.entry(statistic);
      if (!isSampled(entry)) {
        throw new ReleaseError("statistic", `${shown(statistic)} was released as noisy statistics, not as a sample`);
      }
      const { parameter, draws } = entry;
      const points = this.values.get(statistic);
      const groups = this.groupsOf(statistic);
      const bins = isQuantile(entry) ? binEnds(entry.parameters.bins).map(([lower, upper]) => ({ lower: toNumber(lower), upper: toNumber(upper) })) : null;
      return this.selected(where, statistic).flatMap(
        (index) => Array.from({ length: draws }, (_, draw2) => ({
          cell: cellAt(groups, index),
          parameter: bins === null ? parameter : `quantile ${entry.quantile}`,
          draw: draw2,
          ...bins === null ? { value: gridPoint(entry, points[index * draws + draw2]) } : bins[points[index * draws + draw2]]
        }))
      );
    }
    /** The entry of a statistic that is no sample. */
    noisy(statistic) {
      const found = this.entry(statistic);
      if (isSampled(found)) throw noStatistics(shown(statistic));
      return found;
    }
    entry(statistic) {
      const found = this.manifest.statistics.find(({ name }) => name === statistic);
      if (!found) {
        const tree = this.trees.find(({ name }) => name === statistic);
        if (tree !== void 0) {
          const levels = tree.levels.map((level) => shown(`${tree.name}.${level}`)).join(", ");
          throw new ReleaseError("statistic", `${shown(statistic)} is a tree: release.tree(${shown(statistic)}).table(); its levels are the statistics ${levels}`);
        }
        const known = this.manifest.statistics.slice(0, 8).map(({ name }) => shown(name)).join(", ");
        throw new ReleaseError("statistic", `there is no statistic ${shown(statistic)}: there are ${known}`);
      }
      if (!this.values.has(statistic)) throw new ReleaseError("usage", `${shown(statistic)} was not read: name it in statistics`);
      return found;
    }
    /** Positions of the cells of a statistic that have the given keys. */
    selected(where, statistic) {
      const groups = this.groupsOf(statistic);
      const wanted = Object.entries(where).map(([column, key]) => {
        const group3 = groups.find((one) => one.column === column);
        if (!group3) throw new ReleaseError("cell", `there is no group ${shown(column)}`);
        const at = group3.keys.findIndex((one) => String(one) === String(key));
        if (at < 0) throw new ReleaseError("cell", `${shown(column)} has no key ${shown(key)}`);
        return [column, at];
      });
      let positions = [0];
      for (const { column, keys } of groups) {
        const only2 = wanted.find(([name]) => name === column);
        const own = only2 ? [only2[1]] : keys.map((_, i) => i);
        positions = positions.flatMap((position) => own.map((at) => position * keys.length + at));
      }
      return positions;
    }
  };
  function hasPosterior({ family, mechanism, within_unit: within2, count_clipped: counted }) {
    return within2 === void 0 && counted === void 0 && !isSampled({ mechanism }) && (family === "categorical" || Object.hasOwn(ONE_SUM, family));
  }
  function mapOf(quantity2, components) {
    const weights = Object.entries(quantity2.coefficients).map(([name, text]) => [
      components.indexOf(name),
      parseRational(text)
    ]);
    const squares2 = weights.reduce((sum, [, weight]) => sum + toNumber(weight) ** 2, 0);
    return { weights, ofPublicN: parseRational(quantity2.public_n_coefficient), norm: Math.sqrt(squares2) };
  }
  function discreteLaplaceSd(scale2) {
    const half = 0.5 / scale2;
    return half < 700 ? 1 / (Math.SQRT2 * Math.sinh(half)) : 0;
  }
  function cellCount(groups) {
    return groups.reduce((product, { keys }) => product * keys.length, 1);
  }
  function cellAt(groups, index) {
    const found = /* @__PURE__ */ Object.create(null);
    let inner = cellCount(groups);
    for (const { column, keys } of groups) {
      inner /= keys.length;
      found[column] = keys[Math.floor(index / inner) % keys.length];
    }
    return found;
  }
  function groupsOf(stated) {
    return stated.map((group3) => {
      if (group3.kind !== "range") return { column: group3.column, kind: group3.kind, keys: group3.keys };
      const [first, last] = [Number(group3.first), Number(group3.last)];
      return { column: group3.column, kind: "range", keys: Array.from({ length: last - first + 1 }, (_, i) => first + i) };
    });
  }

  // src/manifest.js
  var LARGEST_MANIFEST = 24 * 2 ** 20;
  var HEX16 = /^[0-9a-f]{16}$/;
  var HEX32 = /^[0-9a-f]{32}$/;
  var HEX64 = /^[0-9a-f]{64}$/;
  var VERSION = /^[A-Za-z0-9.+!_-]{1,64}$/;
  var NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
  var STATISTIC = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
  var MOST_AMENDMENTS = 99;
  var STATED = {
    format_version: (value) => value === 1,
    window: (value) => typeof value === "string",
    amends: (value) => value === null || isAmendment(value),
    release_id: isText(HEX16),
    created: isText(/^\d{4}-\d{2}-\d{2}T\d{2}Z$/),
    n: (value) => value === null || isCount(value),
    input_verified: (value) => typeof value === "boolean",
    declared_order: isMapping3,
    files: Array.isArray,
    ledger_id: isText(HEX32),
    drawing_sequence: (value) => isCount(value) && value > 0,
    drawing_hash: isText(HEX64),
    versions: (value) => isMapping3(value) && Object.entries(value).every((pair) => pair.every(isText(VERSION))),
    checksum: isText(HEX64),
    signature: (value) => value === null || isSignature(value),
    plan: isMapping3,
    plan_hash: isText(HEX64),
    statistics: Array.isArray
  };
  var OPTIONAL = { audit: isText(HEX64), contract: isText(HEX64) };
  function checkManifest(manifest) {
    if (!isMapping3(manifest) || manifest.format_version !== 1) {
      throw corrupt("it is of another format than 1, which this reader reads");
    }
    if (manifest.checksum !== sha256(encodeText(encode({ ...manifest, checksum: null, signature: null })))) {
      throw corrupt("its checksum does not fit");
    }
    for (const [field, fits2] of Object.entries(STATED)) {
      if (!Object.hasOwn(manifest, field) || !fits2(manifest[field])) throw corrupt(`${field}: it is not what the format states there`);
    }
    for (const [field, fits2] of Object.entries(OPTIONAL)) {
      if (Object.hasOwn(manifest, field) && !fits2(manifest[field])) throw corrupt(`${field}: it is not what the format states there`);
    }
    const { plan } = manifest;
    if (manifest.plan_hash !== sha256(encodeText(encode(plan)))) throw differs("plan_hash");
    if (plan.format_version !== "1" || !isMapping3(plan.privacy) || !isMapping3(plan.groups) || !isMapping3(plan.statistics)) {
      throw corrupt("plan: no spec could have this plan");
    }
    let derived;
    try {
      derived = derive(plan, manifest.declared_order);
      checkDerived(manifest, derived);
    } catch (error) {
      if (error instanceof ReleaseError) throw error;
      throw corrupt("plan: no spec could have this plan");
    }
    checkStated(manifest, derived);
  }
  function checkDerived(manifest, { heading, statistics }) {
    for (const [field, value] of Object.entries(heading)) same(manifest[field], value, field);
    for (const field of Object.keys(manifest)) {
      const isKnown = Object.hasOwn(STATED, field) || Object.hasOwn(OPTIONAL, field) || Object.hasOwn(heading, field);
      if (!isKnown) throw corrupt(`${shown(field)}: the format has no such field`);
    }
    if (!NAME.test(manifest.name) || !NAME.test(manifest.dataset)) throw corrupt("name: it is no name");
    if (manifest.statistics.length !== statistics.length) throw differs("statistics");
    statistics.forEach((statistic, i) => {
      const stated = manifest.statistics[i];
      const place = `statistics.${shown(statistic.name)}`;
      if (!STATISTIC.test(statistic.name) || !isMapping3(stated)) throw differs(place);
      const fields = statisticFields(statistic, stated);
      for (const [field, value] of Object.entries(fields)) same(stated[field], value, `${place}.${field}`);
      if (Object.hasOwn(fields, "quantities") || isSampled(fields)) {
        for (const field of Object.keys(stated)) if (!Object.hasOwn(fields, field)) throw differs(`${place}.${shown(field)}`);
      } else checkUnknown(stated, statistic, fields, place);
    });
  }
  function checkUnknown(stated, { terms }, fields, place) {
    for (const field of ["cells", "groups"]) if (Object.hasOwn(stated, field) !== Object.hasOwn(fields, field)) throw differs(`${place}.${field}`);
    const { components, quantities, design, partition_total: total } = stated;
    const isList = Array.isArray(components) && components.every((name) => typeof name === "string");
    if (!isList || components.length === 0 || new Set(components).size !== components.length) throw differs(`${place}.components`);
    if (!["partition_of_unity", "bounded", "minimal"].includes(design)) throw differs(`${place}.design`);
    if (!["int64", "decimal128(38, 0)"].includes(stated.value_type)) throw differs(`${place}.value_type`);
    const isOnCone = Object.hasOwn(fields, "cone_noise");
    if (isOnCone && (components.length !== coneSize(fields.cone_noise) || total !== null)) throw differs(`${place}.components`);
    for (const field of ["scale", "l1_sensitivity", "l2_squared"]) if (isOnCone && Object.hasOwn(stated, field)) throw differs(`${place}.${field}`);
    if (!isOnCone && Object.hasOwn(stated, "cone_noise")) throw differs(`${place}.cone_noise`);
    if (total !== null && design !== "partition_of_unity") throw differs(`${place}.partition_total`);
    if (design === "minimal" && !terms.mayBeMinimal) throw differs(`${place}.design`);
    if (total !== null) {
      const size = parseRational(total);
      if (size === null || size.d !== 1n || size.n < 1n) throw differs(`${place}.partition_total`);
      if (size.n * (terms.replaces ? 2n : 1n) > BigInt(stated.l1_sensitivity)) throw differs(`${place}.l1_sensitivity`);
    }
    const isMap = (map) => isMapping3(map) && isMapping3(map.coefficients) && typeof map.name === "string" && parseRational(map.public_n_coefficient) !== null && Object.entries(map.coefficients).every(([name, text]) => components.includes(name) && parseRational(text) !== null);
    if (!Array.isArray(quantities) || !quantities.every(isMap)) throw differs(`${place}.quantities`);
    if (!isMapping3(stated.parameters)) throw differs(`${place}.parameters`);
  }
  function checkStated(manifest, { heading }) {
    const { plan, window, amends, files, statistics } = manifest;
    const { every: every2 } = plan.window ?? {};
    const start2 = every2 === void 0 ? null : periodStart(window, every2);
    if (plan.window === null ? window !== "all" : start2 === null || label(start2, every2) !== window) {
      throw corrupt("window: the plan has no such window");
    }
    if (amends !== null && plan.window === null) throw corrupt("amends: the plan has no windows, so that none is amended");
    if (amends?.release_id === manifest.release_id) throw corrupt("amends: no release replaces itself");
    const isPublic = statistics.some(({ design }) => design === "minimal");
    if (manifest.n !== null !== isPublic) throw corrupt("n: it is stated exactly where the plan makes it public");
    const { variables, ...order } = manifest.declared_order;
    if (Object.keys(order).length !== 2 || !Array.isArray(variables)) throw differs("declared_order");
    if (files.length !== statistics.length) throw differs("files");
    files.forEach((file, i) => {
      const statistic = statistics[i];
      const place = `files.${i}`;
      const isFile = isMapping3(file) && Object.keys(file).length === 5 && isCount(file.size) && isText(HEX64)(file.sha256);
      if (!isFile) throw corrupt(`${place}: it is not what the format states there`);
      same(file.statistic, statistic.name, `${place}.statistic`);
      same(file.path, `${statistic.name}.parquet`, `${place}.path`);
      same(file.rows, (statistic.cells ?? heading.cells) * valuesOfCell(statistic), `${place}.rows`);
      const [least, greatest] = fileSizes(statistic, groupsOf(statistic.groups ?? manifest.groups));
      if (file.size < least || file.size > greatest) throw corrupt(`${place}.size: no file of this plan has that size`);
    });
  }
  function checkFiles(manifest, files, wanted) {
    for (const file of manifest.files) {
      if (!wanted.has(file.statistic)) continue;
      const data = files.get(file.path);
      const name = shown(file.path);
      if (!(data instanceof Uint8Array)) throw new ReleaseError("file", `the file ${name} is missing`);
      if (data.length !== file.size) throw new ReleaseError("file", `the file ${name} has another size than the manifest states`);
      if (sha256(data) !== file.sha256) {
        throw new ReleaseError("file", `the file ${name} is not the one of the manifest: its SHA-256 differs`);
      }
    }
  }
  function same(found, expected, place) {
    if (found === void 0 || encode(found) !== encode(expected)) throw differs(place);
  }
  function isText(pattern) {
    return (value) => typeof value === "string" && pattern.test(value);
  }
  function isMapping3(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }
  function isCount(value) {
    return Number.isSafeInteger(value) && value >= 0;
  }
  function isAmendment(value) {
    const { number: number2, release_id: id, manifest_sha256: hash } = value;
    return Object.keys(value).length === 3 && number2 >= 1 && number2 <= MOST_AMENDMENTS && HEX16.test(id) && HEX64.test(hash);
  }
  function isSignature(value) {
    const { algorithm, key_id: id, value: text } = value;
    return Object.keys(value).length === 3 && algorithm === "ed25519" && HEX16.test(id) && decodeBase64(text)?.length === 64;
  }
  function differs(place) {
    return corrupt(`${place}: it contradicts the plan that was charged, or the format`);
  }
  function corrupt(rule) {
    return new ReleaseError("manifest", `the manifest is corrupt: ${rule}`);
  }

  // src/reading.js
  var LARGEST_WITHDRAWAL = 8 * 2 ** 10;
  async function readRelease(manifestBytes, files, { publicKeys, statistics, withdrawn } = {}) {
    if (!(manifestBytes instanceof Uint8Array) || manifestBytes.length > LARGEST_MANIFEST) {
      throw new ReleaseError("manifest", `the manifest is corrupt: it has more than ${LARGEST_MANIFEST} bytes, or is none`);
    }
    const manifest = decode(manifestBytes);
    if (manifest === null) throw new ReleaseError("manifest", "the manifest is corrupt: it is not in canonical form");
    checkManifest(manifest);
    const status = await checkSignature(manifest, publicKeys);
    const given = files instanceof Map ? files : new Map(Object.entries(files));
    const withdrawal = readWithdrawal(given.get("withdrawn.json"), manifest, manifestBytes);
    if (withdrawal !== null && withdrawn !== true) {
      throw new ReleaseError("withdrawn", `the release was withdrawn: ${shown(withdrawal.reason)}; withdrawn: true reads it all the same`);
    }
    const about = await readAbout(given, manifest, manifestBytes, publicKeys);
    const wanted = new Set(statistics ?? manifest.statistics.map(({ name }) => name));
    checkFiles(manifest, given, wanted);
    return new Release(manifest, given, status, wanted, withdrawal, about);
  }
  function readWithdrawal(bytes, manifest, manifestBytes) {
    if (bytes === void 0) return null;
    const found = bytes instanceof Uint8Array && bytes.length <= LARGEST_WITHDRAWAL ? decode(bytes) : null;
    const fits2 = found?.format_version === 1 && found.release_id === manifest.release_id && found.manifest_sha256 === sha256(manifestBytes) && typeof found.reason === "string";
    if (!fits2) throw new ReleaseError("withdrawn", "withdrawn.json stands beside the manifest, and is no withdrawal of this release");
    return { reason: found.reason, created: found.created };
  }

  // explorer/moments.js
  var KIND = "NormalInverseGamma";
  var [PLACES2, STEPS_OF_SD, MOST_ROUNDS] = [201, 6, 40];
  var LEAST4 = 1e-6;
  var [FALLEN, OPEN] = [23, 1e-5];
  var ORDER = 6;
  function momentsPosterior(table2, index, released, { method, prior: text, nPrior }) {
    const { centre, half_range: half } = table2;
    const prior = parsePrior(text ?? `ScaleMixture(${centre - half}, ${centre + half})`, KIND);
    const parts = prior.components.map(({ logShare: logShare2, numbers: [loc, precision, concentration, scale2] }) => ({
      logShare: logShare2,
      loc: (loc - centre) / half,
      precision,
      concentration,
      scale: scale2 / half ** 2
    }));
    if (nPrior !== void 0) {
      throw new ReleaseError("usage", "this page's table of likelihoods is of the default prior of the number of records");
    }
    const cell = method === PLUG_IN ? null : table2.cells[index];
    if (cell === null && method !== PLUG_IN) {
      throw new ReleaseError("resolution", "the noise leaves too much open in this cell for a table that a page can carry");
    }
    const likelihood = cell === null ? exactly(released.estimates, centre, half) : tabulated2(cell);
    const grid = resolved(likelihood, parts);
    return new MomentsPosterior({
      prior,
      parts,
      grid,
      unit: { centre, half },
      names: released.names,
      method,
      nPrior: method === NOISE_AWARE ? table2.n_prior : null,
      judge: () => conflictOf2(released, prior)
    });
  }
  function exactly({ n: records2, total, squares: squares2 }, centre, half) {
    const n = Math.max(records2, 0);
    const t = Math.min(Math.max((total - centre * records2) / half, -n), n);
    const least = n > 0 ? t * t / n : 0;
    const q = Math.min(Math.max((squares2 - 2 * centre * total + centre ** 2 * records2) / half ** 2, least), Math.max(n, least));
    const mean = n > 0 ? t / n : 0;
    const sd = Math.max(Math.sqrt(n > 0 ? q / n - mean * mean : 0), 1e-3);
    const wide = sd / Math.sqrt(n + 1);
    return {
      window: [
        [mean - 9 * wide, mean + 9 * wide],
        [Math.log(sd) - 9 * wide / sd, Math.log(sd) + 9 * wide / sd].map((end) => Math.min(Math.max(end, Math.log(LEAST4)), 7))
      ],
      limits: [
        [-1e3, 1e3],
        [Math.log(LEAST4), 7]
      ],
      isBounded: false,
      at: (means, logs) => logs.map((log) => {
        const v = Math.exp(2 * log);
        return Float64Array.from(means, (m) => -(n * Math.log(v) + (q - 2 * m * t + n * m * m) / v) / 2);
      })
    };
  }
  function tabulated2({ mean, sd, size, values }) {
    const bytes = Uint8Array.from(atob(values), (sign) => sign.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const nats = Array.from(
      { length: size },
      (_, row4) => Float64Array.from({ length: size }, (_2, column) => view.getInt16(2 * (row4 * size + column), true) / 1e3)
    );
    const across = ([low, high], place) => (place - low) / (high - low) * (size - 1);
    const ends2 = [mean, sd.map((end) => Math.log(Math.max(end, LEAST4)))];
    return {
      window: ends2,
      limits: ends2,
      isBounded: true,
      at(means, logs) {
        const rows = means.map((place) => nearest(across(mean, place), size));
        const columns = logs.map((log) => nearest(across(sd, Math.exp(log)), size));
        const between = rows.map(
          ({ first, weights }) => Float64Array.from({ length: size }, (_, column) => weights.reduce((sum, weight, k) => sum + weight * nats[first + k][column], 0))
        );
        return columns.map(
          ({ first, weights }) => Float64Array.from(between, (row4) => weights.reduce((sum, weight, k) => sum + weight * row4[first + k], 0))
        );
      }
    };
  }
  function nearest(position, size) {
    const first = Math.min(Math.max(Math.floor(position) - 2, 0), size - ORDER);
    const weights = Array.from({ length: ORDER }, (_, k) => {
      let weight = 1;
      for (let other = 0; other < ORDER; other += 1) {
        if (other !== k) weight *= (position - first - other) / (k - other);
      }
      return weight;
    });
    return { first, weights };
  }
  function priorAt(parts, log) {
    const v = Math.exp(2 * log);
    const terms = parts.map(({ logShare: logShare2, loc, precision, concentration: a, scale: scale2 }) => ({
      loc,
      bend: precision / v / 2,
      top: logShare2 + a * Math.log(scale2) - logGamma(a) - a * Math.log(v) - scale2 / v + 0.5 * Math.log(precision / (2 * Math.PI * v)) + Math.LN2
    }));
    const highest3 = Math.max(...terms.map(({ top }) => top));
    return (mean) => {
      let sum = 0;
      for (const { loc, bend, top } of terms) sum += Math.exp(top - highest3 - bend * (mean - loc) ** 2);
      if (sum > 0) return highest3 + Math.log(sum);
      return Math.max(...terms.map(({ loc, bend, top }) => top - bend * (mean - loc) ** 2));
    };
  }
  var even = ([low, high]) => Array.from({ length: PLACES2 }, (_, i) => low + (high - low) * i / (PLACES2 - 1));
  function resolved(likelihood, parts) {
    let window = likelihood.window.map((ends2) => [...ends2]);
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const grid = weighed2(likelihood, parts, window);
      const next = window.map((ends2, side) => fitting(ends2, likelihood.limits[side], grid.sides[side]));
      if (next.every((ends2, side) => ends2 === window[side])) {
        require2(grid, likelihood);
        return grid;
      }
      window = next;
    }
    throw tooFar();
  }
  function fitting(ends2, [least, most], { density, sd, places }) {
    const top = density.reduce((high2, value) => Math.max(high2, value), 0);
    const level = top * Math.exp(-FALLEN);
    const width2 = ends2[1] - ends2[0];
    const low = density[0] > level && ends2[0] > least ? Math.max(ends2[0] - width2 / 2, least) : ends2[0];
    const high = density.at(-1) > level && ends2[1] < most ? Math.min(ends2[1] + width2 / 2, most) : ends2[1];
    if (low !== ends2[0] || high !== ends2[1]) return [low, high];
    const step = width2 / (PLACES2 - 1);
    if (sd > STEPS_OF_SD * step) return ends2;
    const first = density.findIndex((value) => value > level);
    const last = density.findLastIndex((value) => value > level);
    const nearer = [places[Math.max(first - 1, 0)], places[Math.min(last + 1, PLACES2 - 1)]];
    return nearer[1] - nearer[0] > 0.8 * width2 ? ends2 : nearer;
  }
  function weighed2(likelihood, parts, window) {
    const [means, logs] = window.map(even);
    const nats = likelihood.at(means, logs);
    const step = logs[1] - logs[0];
    let top = -Infinity;
    nats.forEach((row4, j) => {
      const prior = priorAt(parts, logs[j]);
      for (let i = 0; i < PLACES2; i += 1) {
        row4[i] += prior(means[i]);
        if (row4[i] > top) top = row4[i];
      }
    });
    const [ofMean, ofSd] = [new Float64Array(PLACES2), new Float64Array(PLACES2)];
    nats.forEach((row4, j) => {
      for (let i = 0; i < PLACES2; i += 1) {
        let weight = Math.exp(row4[i] - top);
        if (likelihood.isBounded) {
          const most = Math.log(1 - means[i] ** 2) / 2;
          weight *= Math.min(Math.max((most - logs[j]) / step + 0.5, 0), 1);
        }
        ofMean[i] += weight;
        ofSd[j] += weight;
      }
    });
    return { sides: [new Side(means, ofMean), new Side(logs, ofSd)] };
  }
  function require2({ sides }, { limits, isBounded }) {
    const natural = [
      [-1, 1],
      [Math.log(LEAST4), 0]
    ];
    sides.forEach(({ places, density }, side) => {
      const total = density.reduce((sum, value) => sum + value, 0);
      [0, 1].forEach((end) => {
        const at = end === 0 ? 0 : PLACES2 - 1;
        const isOpen = places[at] === limits[side][end] && !(isBounded && limits[side][end] === natural[side][end]);
        if (isOpen && density[at] > OPEN * total) throw tooFar();
      });
      if (!(total > 0)) throw tooFar();
    });
  }
  function tooFar() {
    return new ReleaseError(
      "resolution",
      "this prior and what was released are too far apart for the table of likelihoods that the page carries"
    );
  }
  var Side = class {
    constructor(places, density) {
      this.places = places;
      this.density = density;
      this.step = places[1] - places[0];
      const at = (i) => density[Math.min(Math.max(i, 0), density.length - 1)];
      this.below = new Float64Array(places.length);
      for (let i = 0; i + 1 < places.length; i += 1) {
        const area = (13 * (at(i) + at(i + 1)) - at(i - 1) - at(i + 2)) / 24;
        this.below[i + 1] = this.below[i] + Math.max(area, 0);
      }
      this.total = this.below.at(-1);
      this.mean = this.average((value) => value);
      this.sd = Math.sqrt(this.average((value) => (value - this.mean) ** 2));
    }
    average(of2) {
      const sum = this.density.reduce((all, value) => all + value, 0);
      return this.density.reduce((all, value, i) => all + value * of2(this.places[i]), 0) / sum;
    }
    quantile(share3) {
      const wanted = share3 * this.total;
      let [low, high] = [0, this.below.length - 1];
      while (high - low > 1) {
        const middle = low + high >> 1;
        if (this.below[middle] <= wanted) low = middle;
        else high = middle;
      }
      const [a, b] = [this.density[low], this.density[low + 1]];
      const part = (wanted - this.below[low]) / (this.below[low + 1] - this.below[low] || 1);
      const area = part * (a + b) / 2;
      const away = area / (a / 2 + Math.sqrt(Math.max(a * a / 4 + (b - a) * area / 2, 0)) || 1);
      return this.places[low] + Math.min(Math.max(away, 0), 1) * this.step;
    }
    /** The density at a place, by the cubic through the four nearest. */
    at(place) {
      const position = (place - this.places[0]) / this.step;
      const first = Math.floor(position);
      if (first < 0 || first >= this.places.length - 1) return 0;
      const t = position - first;
      const [before2, left, right, after] = [-1, 0, 1, 2].map(
        (k) => this.density[Math.min(Math.max(first + k, 0), this.density.length - 1)]
      );
      const value = left + t / 2 * (right - before2 + t * (2 * before2 - 5 * left + 4 * right - after + t * (3 * (left - right) + after - before2)));
      return Math.max(value, 0) / (this.total * this.step);
    }
  };
  var MomentsPosterior = class {
    constructor({ prior, parts, grid, unit, names, method, nPrior, judge }) {
      Object.assign(this, { parts, unit, method, nPrior, judge });
      this.parameters = names;
      this.prior = prior.text;
      this.clipping = "ignored";
      this.defaultInterval = CENTRAL;
      [this.ofMean, this.ofLog] = grid.sides;
    }
    get conflict() {
      this.found ??= { conflict: this.judge() };
      return this.found.conflict;
    }
    isMean(parameter) {
      return this.parameters.indexOf(parameter) === 0;
    }
    mean(parameter) {
      const { centre, half } = this.unit;
      return this.isMean(parameter) ? centre + half * this.ofMean.mean : half ** 2 * this.ofLog.average((log) => Math.exp(2 * log));
    }
    sd(parameter) {
      const { half } = this.unit;
      if (this.isMean(parameter)) return half * this.ofMean.sd;
      const mean = this.ofLog.average((log) => Math.exp(2 * log));
      return half ** 2 * Math.sqrt(this.ofLog.average((log) => (Math.exp(2 * log) - mean) ** 2));
    }
    quantile(share3, parameter) {
      const { centre, half } = this.unit;
      return this.isMean(parameter) ? centre + half * this.ofMean.quantile(share3) : half ** 2 * Math.exp(2 * this.ofLog.quantile(share3));
    }
    interval(mass, parameter, kind = this.defaultInterval) {
      return intervalOf((share3) => this.quantile(share3, parameter), mass, kind, this.isMean(parameter) ? [-Infinity, Infinity] : [0, Infinity]);
    }
    density(parameter, values) {
      const { centre, half } = this.unit;
      if (this.isMean(parameter)) return Float64Array.from(values, (value) => this.ofMean.at((value - centre) / half) / half);
      return Float64Array.from(values, (value) => value > 0 ? this.ofLog.at(Math.log(value / half ** 2) / 2) / (2 * value) : 0);
    }
    priorDensity(parameter, values) {
      const { centre, half } = this.unit;
      const of2 = this.isMean(parameter) ? meanOfPrior : varianceOfPrior;
      const unit = this.isMean(parameter) ? half : half ** 2;
      return Float64Array.from(values, (value) => {
        const place = this.isMean(parameter) ? (value - centre) / half : value / half ** 2;
        return this.parts.reduce((sum, part) => sum + Math.exp(part.logShare + of2(part, place)), 0) / unit;
      });
    }
  };
  function meanOfPrior({ loc, precision, concentration: a, scale: scale2 }, mean) {
    const width2 = scale2 / (a * precision);
    const constant = logGamma(a + 0.5) - logGamma(a) - 0.5 * Math.log(2 * a * Math.PI * width2);
    return constant - (a + 0.5) * Math.log1p((mean - loc) ** 2 / (2 * a * width2));
  }
  function varianceOfPrior({ concentration: a, scale: scale2 }, variance) {
    if (!(variance > 0)) return -Infinity;
    return a * Math.log(scale2) - logGamma(a) - (a + 1) * Math.log(variance) - scale2 / variance;
  }
  function conflictOf2({ statistic, values, publicN }, { components, text }) {
    const pairs = components.flatMap(({ logShare: logShare2, numbers: [loc, precision, concentration, scale2] }) => {
      const { log, start: start2 } = conjugate("InverseGamma", [concentration, scale2]);
      const variances = LineDistribution.of(LINES2.positive, log, [start2]);
      return LEVELS3.flatMap(({ share: share3, weight }) => {
        const variance = variances.quantile(share3);
        return NORMALS.map(({ away, chance: chance2 }) => ({
          weight: Math.exp(logShare2) * weight * chance2,
          mean: loc + Math.sqrt(variance / precision) * away,
          variance
        }));
      });
    }).filter(({ weight }) => weight > 1e-17);
    const parts = {
      total: ({ weight, mean, variance }) => ({ weight, mean, variance, third: 0 }),
      total_of_squares: ({ weight, mean, variance: v }) => ({
        weight,
        mean: v + mean ** 2,
        variance: 2 * v * (v + 2 * mean ** 2),
        third: 8 * v ** 2 * (v + 3 * mean ** 2)
      })
    };
    const names = statistic.quantities.map(({ name }) => name).filter((name) => name !== "n");
    return judged(statistic, values, publicN, (place) => pairs.map(parts[names[place]]), text);
  }
  var LEVELS3 = Array.from({ length: 52 }, (_, i) => {
    const share3 = (logit) => 1 / (1 + Math.exp(-logit));
    return { share: share3(i - 25.5), weight: share3(i - 25) - share3(i - 26) };
  });
  var NORMALS = Array.from({ length: 33 }, (_, i) => ({ away: (i - 16) / 2, chance: Math.exp(-0.5 * ((i - 16) / 2) ** 2) }));
  var ALL = NORMALS.reduce((sum, { chance: chance2 }) => sum + chance2, 0);
  for (const one of NORMALS) one.chance /= ALL;

  // explorer/state.js
  var MARK = "#explorer&";
  var MASS3 = 0.95;
  var [LEAST_MASS2, MOST_MASS] = [1e-3, 0.999];
  var [TREES, COLUMNS] = ["tree", "column"];
  var PART = "part";
  var MOST_OPEN = 40;
  function firstQuestion(page) {
    const answered = page.statistics.find((statistic) => {
      const table2 = page.likelihoods[statistic.name];
      return table2 === void 0 ? hasPosterior(statistic) : table2.reason === void 0;
    });
    return {
      statistic: (answered ?? page.statistics[0]).name,
      cell: page.groups.map((group3) => group3.key(0)),
      versus: null,
      prior: "",
      nPrior: "",
      mass: MASS3,
      shown: "",
      whole: false,
      together: false
    };
  }
  function toHash(question) {
    const fields = new URLSearchParams();
    fields.set("statistic", question.statistic);
    for (const key of question.cell) fields.append("cell", key);
    for (const key of question.versus ?? []) fields.append("versus", key);
    if (question.prior) fields.set("prior", question.prior);
    if (question.nPrior) fields.set("n-prior", question.nPrior);
    if (question.mass !== MASS3) fields.set("mass", String(question.mass));
    if (question.shown) fields.set("show", question.shown);
    if (question.whole) fields.set("whole", "yes");
    if (question.together) fields.set("together", "yes");
    return MARK + fields.toString();
  }
  function fromHash(hash, page, base) {
    if (!hash.startsWith(MARK)) return base;
    const fields = new URLSearchParams(hash.slice(MARK.length));
    const statistic = fields.get("statistic");
    const cell = cellOf(fields.getAll("cell"), page);
    const versus = cellOf(fields.getAll("versus"), page);
    const mass = Number(fields.get("mass"));
    return {
      ...base,
      statistic: page.statistics.some(({ name }) => name === statistic) ? statistic : base.statistic,
      cell: cell ?? base.cell,
      versus: page.groups.length > 0 ? versus : null,
      prior: (fields.get("prior") ?? "").slice(0, 2e3),
      nPrior: (fields.get("n-prior") ?? "").slice(0, 200),
      mass: isMass(mass) ? mass : base.mass,
      shown: fields.get("show") ?? "",
      whole: fields.get("whole") === "yes",
      together: fields.get("together") === "yes"
    };
  }
  function treeFromHash(hash, page, populations) {
    const fields = fieldsOf(hash, TREES);
    const tree = page.trees.find(({ name }) => name === fields.get("name")) ?? page.trees[0];
    const { components } = tree;
    const first = components.includes("true") ? "true" : components[0];
    return {
      name: tree.name,
      where: placeFrom(fields, tree.groups),
      component: oneOf(components, fields.get("counted"), first),
      population: oneOf(populations, fields.get("leaves"), populations[0]),
      mass: massOr(fields.get("mass"), MASS3),
      opened: fields.getAll("open").slice(0, MOST_OPEN)
    };
  }
  function treeFields({ name, where, component: component2, population, mass, opened }, usual) {
    return [
      ["name", name],
      ...Object.values(where).map((key) => ["key", key]),
      ["counted", component2],
      ...population === usual ? [] : [["leaves", population]],
      ...mass === MASS3 ? [] : [["mass", String(mass)]],
      ...[...opened].slice(0, MOST_OPEN).map((node) => ["open", node])
    ];
  }
  function columnFromHash(hash, page, kinds) {
    const fields = fieldsOf(hash, COLUMNS);
    const column = page.columns.find(({ name }) => name === fields.get("name")) ?? page.columns[0];
    const least = fields.get("least");
    return {
      name: column.name,
      where: placeFrom(fields, column.groups),
      of: oneOf(kinds, fields.get("of"), kinds[0]),
      level: shareOr(fields.get("level"), 0.5),
      least: least !== null && least.trim() !== "" && Number.isFinite(Number(least)) ? Number(least) : null,
      mass: massOr(fields.get("mass"), MASS3),
      prior: (fields.get("prior") ?? "").slice(0, 2e3),
      whole: fields.get("whole") === "yes"
    };
  }
  function columnFields({ name, where, of: of2, level, least, mass, prior, whole: whole2 }, usual) {
    return [
      ["name", name],
      ...Object.values(where).map((key) => ["key", key]),
      ...of2 === usual ? [] : [["of", of2]],
      ["level", String(level)],
      ...least === null ? [] : [["least", String(least)]],
      ...mass === MASS3 ? [] : [["mass", String(mass)]],
      ...prior ? [["prior", prior]] : [],
      ...whole2 ? [["whole", "yes"]] : []
    ];
  }
  function partOf(hash) {
    return hash.startsWith(MARK) ? oneOf([TREES, COLUMNS], new URLSearchParams(hash.slice(MARK.length)).get(PART), null) : null;
  }
  function fieldsOf(hash, part) {
    const fields = hash.startsWith(MARK) ? [...new URLSearchParams(hash.slice(MARK.length))] : [];
    const ofPart = fields.filter(([name]) => name.startsWith(`${part}.`));
    return new URLSearchParams(ofPart.map(([name, value]) => [name.slice(part.length + 1), value]));
  }
  function withPart(hash, part, fields) {
    const others2 = new URLSearchParams(hash.startsWith(MARK) ? hash.slice(MARK.length) : "");
    const kept2 = [...others2].filter(([name]) => name !== PART && !name.startsWith(`${part}.`));
    const named = fields.map(([name, value]) => [`${part}.${name}`, value]);
    return MARK + new URLSearchParams([...kept2, ...named, [PART, part]]).toString();
  }
  function withQuestion(hash, question) {
    const others2 = [TREES, COLUMNS].flatMap((part) => [...fieldsOf(hash, part)].map(([name, value]) => [`${part}.${name}`, value]));
    const asked = toHash(question);
    return others2.length === 0 ? asked : `${asked}&${new URLSearchParams(others2)}`;
  }
  function remember(hash) {
    try {
      history.replaceState(null, "", hash);
    } catch {
    }
  }
  function placeFrom(fields, groups) {
    const keys = fields.getAll("key");
    const areKeys = keys.length === groups.length && groups.every((group3, index) => group3.has(keys[index]));
    return Object.fromEntries(groups.map((group3, index) => [group3.column, areKeys ? keys[index] : group3.key(0)]));
  }
  function oneOf(values, value, otherwise) {
    return values.includes(value) ? value : otherwise;
  }
  function shareOr(text, otherwise) {
    const share3 = Number(text);
    return share3 > 0 && share3 < 1 ? share3 : otherwise;
  }
  function isMass(mass) {
    return mass >= LEAST_MASS2 && mass <= MOST_MASS;
  }
  function massOr(text, otherwise) {
    const mass = Number(text);
    return isMass(mass) ? mass : otherwise;
  }
  function whereOf(page, keys) {
    return Object.fromEntries(page.groups.map(({ column }, index) => [column, keys[index]]));
  }
  function inWords(page, keys) {
    return page.groups.map(({ column }, index) => page.words.cell(column, keys[index]) ?? `${column}=${keys[index]}`).join(", ");
  }
  function cellOf(keys, page) {
    if (keys.length !== page.groups.length || keys.length === 0) return null;
    return page.groups.every((group3, index) => group3.has(keys[index])) ? keys : null;
  }

  // explorer/reading.js
  var MOST_KEPT2 = 60;
  var MOST_TOGETHER = 36;
  function reading(page) {
    const opened = /* @__PURE__ */ new Map();
    const kept2 = /* @__PURE__ */ new Map();
    function release(...statistics) {
      const key = JSON.stringify(statistics);
      if (!opened.has(key)) {
        const files = Object.fromEntries(statistics.map((name) => [page.pathOf(name), page.file(page.pathOf(name))]));
        const read2 = readRelease(page.manifestBytes, files, { statistics });
        opened.set(key, read2.then((found) => Object.assign(found, { about: page.about })));
      }
      return opened.get(key);
    }
    async function remembered(key, make) {
      if (!kept2.has(key)) {
        const found = await make();
        if (kept2.size >= MOST_KEPT2) kept2.delete(kept2.keys().next().value);
        kept2.set(key, found);
      }
      return kept2.get(key);
    }
    return {
      /** The posterior of one cell, with the laws of some parameters worked out; throws what the reader throws. */
      async posterior(statistic, cell, { prior, nPrior, method, parameters }, pause) {
        const key = JSON.stringify([statistic, cell, prior, nPrior, method, parameters]);
        return remembered(key, async () => {
          const asked = { method, where: whereOf(page, cell) };
          if (prior) asked.prior = prior;
          if (parameters) asked.parameters = parameters;
          if (nPrior && method !== "plug-in") asked.nPrior = nPrior;
          const opened2 = await release(statistic);
          const table2 = page.likelihoods[statistic];
          return table2 === void 0 ? opened2.posteriorInSlices(statistic, asked, pause) : ofMoments(opened2, statistic, table2, asked);
        });
      },
      /** The counts of a tree; throws what the reader throws. */
      async tree(name, asked, pause) {
        const { levels } = page.trees.find((one) => one.name === name);
        const found = await release(...levels.map((level) => `${name}.${level}`));
        return remembered(JSON.stringify(["tree", name, asked]), () => found.treeInSlices(name, asked, pause));
      },
      /** The column behind a histogram, in one cell; throws what the reader throws. */
      async column(name, asked, pause) {
        const found = await release(name);
        return remembered(JSON.stringify(["column", name, asked]), () => found.columnInSlices(name, asked, pause));
      },
      entries: (posterior, statistic) => entriesOf(posterior, statistic, page.words),
      /** Whether all cells together contradict a prior; null where that is not judged. */
      async together(statistic, { prior, nPrior }, pause) {
        if (page.likelihoods[statistic] !== void 0) return null;
        const asked = { most: MOST_TOGETHER, prior };
        if (nPrior) asked.nPrior = nPrior;
        return (await release(statistic)).conflictInSlices(statistic, asked, pause);
      },
      /** What was released of one cell: quantities with the standard deviations of their noise. */
      async table(statistic, cell) {
        return (await release(statistic)).table(statistic, whereOf(page, cell));
      }
    };
  }
  function ofMoments(release, statistic, table2, asked) {
    if (table2.reason) throw new ReleaseError("statistic", table2.reason);
    const entry = release.noisy(statistic);
    const [index] = release.selected(asked.where, statistic);
    const width2 = entry.components.length;
    const estimates = Object.fromEntries(release.table(statistic, asked.where).map(({ quantity: quantity2, estimate: estimate2 }) => [quantity2, estimate2]));
    const released = {
      statistic: entry,
      values: [...release.values.get(statistic).slice(index * width2, (index + 1) * width2)],
      publicN: entry.design === "minimal" ? release.manifest.n : null,
      names: entry.family === "lognormal" ? ["log_mean", "log_variance"] : ["mean", "variance"],
      estimates: { n: estimates.n, total: estimates.total, squares: estimates.total_of_squares }
    };
    return momentsPosterior(table2, index, released, asked);
  }
  function entriesOf(posterior, statistic, words) {
    return posterior.parameters.map((key, index) => {
      const [, parameter, category] = /^(\w+)\[(.*)\]$/s.exec(key) ?? [null, key, null];
      const named = words.number(statistic.name, parameter, category);
      return {
        key,
        index,
        parameter,
        category,
        label: category === null ? parameter : words.value(statistic.name, category),
        title: named?.title ?? `${parameter} of ${statistic.name}${category === null ? "" : ` = ${category}`}`,
        unit: named?.unit ?? "",
        isNamed: named !== null,
        support: supportOf(parameter)
      };
    });
  }
  function lawOf(posterior, { key }) {
    return {
      mean: posterior.mean(key),
      sd: posterior.sd(key),
      quantile: (share3) => posterior.quantile(share3, key),
      interval: (mass) => posterior.interval(mass, key),
      density: (points) => posterior.density(key, points),
      priorDensity: (points) => posterior.priorDensity(key, points)
    };
  }
  function supportOf(parameter) {
    if (parameter === "probability") return [0, 1];
    return /mean|loc/.test(parameter) ? [-Infinity, Infinity] : [0, Infinity];
  }

  // explorer/answering.js
  var NOISE_AWARE2 = "noise-aware";
  var PLUG_IN2 = "plug-in";
  var PATIENCE = 80;
  var Overtaken = class extends Error {
  };
  async function answer(reader, statistic, question, isOvertaken, show) {
    const { cell, versus, prior, nPrior, mass } = question;
    const pause = async () => {
      await nextTask();
      if (isOvertaken()) throw new Overtaken();
      if (first !== null && performance.now() > patience) {
        show(first);
        first = null;
      }
    };
    const patience = performance.now() + PATIENCE;
    let first = null;
    const posterior = (keys, method, parameters) => reader.posterior(statistic.name, keys, { prior, nPrior, method, parameters }, pause);
    const plugIn2 = await posterior(cell, PLUG_IN2, []);
    await pause();
    const entries = reader.entries(plugIn2, statistic);
    const entry = entries.find(({ key }) => key === question.shown) ?? entries[0];
    const side = (kind, of2) => {
      const law = lawOf(of2, entry);
      return { kind, law, interval: law.interval(mass) };
    };
    const known = { question, statistic, entries, entry, contrast: void 0 };
    const ignoring = side(PLUG_IN2, plugIn2);
    const { priorDensity } = ignoring.law;
    first = {
      ...known,
      sides: [ignoring],
      priorDensity,
      prior: plugIn2.prior,
      nPrior: null,
      posterior: plugIn2,
      released: []
    };
    const aware = await posterior(cell, NOISE_AWARE2, [entry.key]);
    first = null;
    await pause();
    const sides = [side(NOISE_AWARE2, aware)];
    const terms = { prior: aware.prior, nPrior: aware.nPrior };
    const released = await reader.table(statistic.name, cell);
    const whole2 = { ...known, ...terms, posterior: aware, priorDensity, released };
    await pause();
    if (versus === null) {
      show({ ...whole2, sides: [...sides, ignoring] });
      return;
    }
    const other = await posterior(versus, NOISE_AWARE2, [entry.key]);
    await pause();
    sides.push(side("versus", other));
    show({ ...whole2, other, sides });
    await pause();
    show({ ...whole2, other, sides, contrast: contrast(sides[0].law, sides[1].law, mass) });
  }
  function nextTask() {
    return new Promise((resume) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resume();
      };
      port2.postMessage(null);
    });
  }

  // explorer/axis.js
  function aroundPosteriors(laws, support) {
    const low = Math.min(...laws.map((law) => law.quantile(1e-3)));
    const high = Math.max(...laws.map((law) => law.quantile(0.999)));
    return within([low - (high - low) * 0.3, high + (high - low) * 0.3], support);
  }
  function aroundPrior(priorDensity, laws, support) {
    const narrow = aroundPosteriors(laws, support);
    if (support[0] === 0 && support[1] === 1) return support;
    const centre = laws[0].mean;
    const scale2 = laws[0].sd || 1;
    const nodes = Array.from({ length: 3001 }, (_, index) => centre + scale2 * Math.sinh((index - 1500) / 60));
    const possible = nodes.filter((node) => node > support[0] && node < support[1]);
    const densities = priorDensity(possible);
    const masses = possible.map((node, index) => index === 0 ? 0 : (node - possible[index - 1]) * densities[index]);
    const total = masses.reduce((sum, mass) => sum + (Number.isFinite(mass) ? mass : 0), 0);
    if (!(total > 0)) return narrow;
    const [low, high] = [0.01, 0.98].map((share3) => {
      let sum = 0;
      return possible.find((_, index) => (sum += Number.isFinite(masses[index]) ? masses[index] : 0) >= share3 * total);
    });
    return within([Math.min(low, narrow[0]), Math.max(high, narrow[1])], support);
  }
  function reaching([low, high], [first, last], support) {
    const room = (last - first) * 0.2;
    return within([Math.min(low, first - room), Math.max(high, last + room)], support);
  }
  function settled(shown2, wanted) {
    if (shown2 === null) return wanted;
    const fits2 = wanted[0] >= shown2[0] && wanted[1] <= shown2[1];
    return fits2 && wanted[1] - wanted[0] > (shown2[1] - shown2[0]) / 3 ? shown2 : wanted;
  }
  function pointsOf([low, high], size = 600) {
    return Array.from({ length: size + 1 }, (_, index) => low + (high - low) * index / size);
  }
  function inside(points, support) {
    const least = (points.at(-1) - points[0]) * 1e-6;
    return points.map((point) => Math.min(Math.max(point, support[0] + least), support[1] - least));
  }
  function within([low, high], support) {
    return [Math.max(low, support[0]), Math.min(high, support[1])];
  }

  // explorer/dom.js
  var SVG = "http://www.w3.org/2000/svg";
  function element(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes = {}, ...children) {
    return filled(document.createElementNS(SVG, tag), attributes, children);
  }
  function replace(node, ...children) {
    node.replaceChildren(...kept(children));
    return node;
  }
  function freshId(name) {
    count += 1;
    return `explorer-${name}-${count}`;
  }
  var count = 0;
  function filled(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== null && value !== void 0 && value !== false) node.setAttribute(name, String(value));
    }
    node.append(...kept(children));
    return node;
  }
  function kept(children) {
    return children.flat(Infinity).filter((child) => child !== null && child !== void 0 && child !== false);
  }

  // explorer/lines.js
  function pythonText(text) {
    let written3 = "";
    for (const character of text) {
      const code = character.codePointAt(0);
      if (character === "\\" || character === '"') written3 += `\\${character}`;
      else if (code >= 32 && code < 127) written3 += character;
      else if (code < 256) written3 += `\\x${code.toString(16).padStart(2, "0")}`;
      else if (code < 65536) written3 += `\\u${code.toString(16).padStart(4, "0")}`;
      else written3 += `\\U${code.toString(16).padStart(8, "0")}`;
    }
    return `"${written3}"`;
  }
  function placeOf(uri, address) {
    const isRead = /^https:|^http:\/\/(localhost|127\.0\.0\.1)(:|\/)/.test(address);
    return isRead && uri.startsWith("./") ? new URL(".", address).href.replace(/\/$/, "") : uri;
  }
  function shellWord(text) {
    return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  }
  function pythonLines(page, question, name) {
    const terms = [pythonText(question.statistic)];
    if (question.prior) terms.push(`prior=${pythonText(question.prior)}`);
    if (question.nPrior) terms.push(`n_prior=${pythonText(question.nPrior)}`);
    const posterior = (keys) => `release.posterior(${[...terms, ...whereTerm(page, keys)].join(", ")})`;
    const parameter = pythonText(name);
    const lines = ["import suffice", "", `release = suffice.open_release(${pythonText(page.uri)})`];
    if (question.versus === null) {
      lines.push(`posterior = ${posterior(question.cell)}`);
      lines.push(`print(posterior.mean(${parameter}), posterior.sd(${parameter}))`);
      lines.push(`print(posterior.credible_interval(${parameter}, ${question.mass}))`);
      return lines.join("\n");
    }
    const alike = page.groups.map((_, index) => question.cell[index] === question.versus[index]);
    const sides = [question.cell, question.versus].map((keys) => pythonMapping(page, keys, (index) => !alike[index]));
    if (alike.includes(true)) terms.push(`where=${pythonMapping(page, question.cell, (index) => alike[index])}`);
    lines.push(`posterior = release.posterior(${terms.join(", ")})`);
    lines.push(`difference = posterior.difference(${parameter}, ${sides.join(", ")})`);
    lines.push("print(difference.mean, difference.sd)");
    lines.push(`print(difference.credible_interval(${question.mass}, interval="central"), difference.probability())`);
    return lines.join("\n");
  }
  function pooledLines(question, pooled) {
    return [
      "import suffice",
      "",
      `publication = suffice.open_publication(${pythonText(pooled.uri)})`,
      `print(publication.pooled(${pythonText(question.statistic)}))`
    ].join("\n");
  }
  function commandLine(page, question) {
    return commandWords(page, question).join(" ");
  }
  function commandWords(page, question) {
    const words = ["suffice", "posterior", page.uri, question.statistic];
    page.groups.forEach(({ column }, index) => {
      words.push("--where", `${column}=${question.cell[index]}`);
      const other = question.versus?.[index] ?? question.cell[index];
      if (other !== question.cell[index]) words.push("--versus", `${column}=${other}`);
    });
    if (question.prior) words.push("--prior", question.prior);
    if (question.nPrior) words.push("--n-prior", question.nPrior);
    words.push("--mass", String(question.mass));
    if (question.versus !== null) words.push("--interval", "central");
    return words.map(shellWord);
  }
  function whereTerm(page, keys) {
    return page.groups.length === 0 ? [] : [`where=${pythonMapping(page, keys, () => true)}`];
  }
  function pythonMapping(page, keys, isNamed) {
    const pairs = page.groups.map(({ column }, index) => isNamed(index) ? `${pythonText(column)}: ${pythonText(keys[index])}` : null).filter((pair) => pair !== null);
    return `{${pairs.join(", ")}}`;
  }

  // explorer/downloads.js
  function offer(name, file, type, make) {
    const press = () => {
      const address = URL.createObjectURL(new Blob([make()], { type }));
      const link = element("a", { href: address, download: file.replaceAll(/[^A-Za-z0-9._-]/g, "_") });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1e4);
    };
    return element("button", { type: "button", click: press }, name);
  }
  function asJson(page, answer2) {
    return `${JSON.stringify({ source: sourceOf(page, answer2), ...numbersOf(page, answer2), densities: densitiesOf(answer2) }, null, 2)}
`;
  }
  function asCsv(page, answer2) {
    const { rows } = numbersOf(page, answer2);
    const source = sourceOf(page, answer2);
    const said = {
      release: source.release,
      release_id: source.release_id,
      statistic: source.statistic,
      prior: source.prior,
      n_prior: source.n_prior,
      mass: source.mass
    };
    const groups = page.groups.map(({ column }) => column);
    const heads = [...groups, "parameter", "category", "method", "mean", "sd", "lower", "upper", ...Object.keys(said)];
    const lines = rows.map((row4) => [
      ...groups.map((column) => row4.cell[column]),
      ...[row4.parameter, row4.category, row4.method, row4.mean, row4.sd, row4.lower, row4.upper],
      ...Object.values(said)
    ]);
    return [heads, ...lines].map((line2) => line2.map(csvField).join(",")).join("\r\n") + "\r\n";
  }
  function sourceOf(page, { statistic, prior, nPrior, posterior, other, question, sides, entry }) {
    return {
      release: page.label,
      release_id: page.releaseId,
      uri: page.uri,
      ...page.loss,
      cost: "0",
      statistic: statistic.name,
      family: statistic.family,
      methods: [...new Set(sides.map(({ kind }) => methodOf(kind)))],
      prior,
      n_prior: nPrior,
      mass: question.mass,
      interval: posterior.defaultInterval,
      conflicts: [posterior, other].flatMap((one) => one?.conflict?.lines ?? []),
      computed_by: "the explorer of the release's page, by quadrature",
      python: pythonLines(page, question, entry.parameter),
      command: commandLine(page, question)
    };
  }
  function numbersOf(page, { entry, question, sides, contrast: contrast2 }) {
    const rows = sides.map(({ kind, law, interval }) => ({
      cell: whereOf(page, kind === "versus" ? question.versus : question.cell),
      parameter: entry.parameter,
      category: entry.category,
      method: methodOf(kind),
      mean: law.mean,
      sd: law.sd,
      lower: interval[0],
      upper: interval[1]
    }));
    return contrast2 ? { rows, comparison: contrast2 } : { rows };
  }
  function densitiesOf({ curves: { points, curves }, question }) {
    const named = (kind) => kind === "noise-aware" && question.versus !== null ? "first" : kind === "versus" ? "second" : kind;
    return { value: points, ...Object.fromEntries(curves.map(({ kind, densities }) => [named(kind), [...densities]])) };
  }
  function methodOf(kind) {
    return kind === "plug-in" ? "plug-in" : "noise-aware";
  }
  var RUN = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]/;
  var NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  function csvField(value) {
    if (value === null || value === void 0) return "";
    const given = String(value);
    const text = typeof value === "string" && RUN.test(given) && !NUMBER.test(given) ? `'${given}` : given;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  // explorer/numbers.js
  function written(value, digits = 4) {
    if (value === null || value === void 0 || !Number.isFinite(value)) return "\u2013";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e9 || size < 1e-5) return value.toExponential(digits - 1);
    const rounded2 = Number(value.toPrecision(digits));
    const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(rounded2)));
    return decimals <= 0 ? value.toFixed(0) : rounded2.toFixed(Math.min(decimals, 20));
  }
  function whole(value) {
    return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  }
  function beside(value, sd) {
    const decimals = 1 - Math.floor(Math.log10(sd));
    const isPlain = Number.isFinite(value) && Number.isFinite(decimals) && decimals <= 7 && Math.abs(value) < 1e9;
    return isPlain ? value.toFixed(Math.max(0, decimals)) : written(value);
  }
  function brief(value, digits = 4) {
    const text = written(value, digits);
    return /^-?\d+\.\d*$/.test(text) ? text.replace(/\.?0+$/, "") : text;
  }
  function rounded(value, digits = 4) {
    return value === 0 ? 0 : Number(value.toPrecision(digits));
  }
  function ticks(low, high, most = 6) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= rough * 0.999);
    const values = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
      values.push(index * step);
    }
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const largest3 = Math.max(Math.abs(low), Math.abs(high));
    const write = (value) => {
      if (value === 0) return "0";
      return largest3 >= 1e7 || decimals > 7 ? brief(value, 6) : value.toFixed(decimals);
    };
    return { values, write };
  }

  // explorer/picture.js
  var [HIGHEST, BEYOND] = [1.8, 3];
  var MARGIN = { top: 26, right: 14, bottom: 46, left: 14 };
  function draw(node, { points, range, axis, title, description, width: width2, curves, pooled = null }) {
    const height = width2 < 480 ? 250 : 330;
    const inner = { width: width2 - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    const bottom = MARGIN.top + inner.height;
    const x = (value) => MARGIN.left + (value - range[0]) / (range[1] - range[0]) * inner.width;
    const top = highest2(curves);
    const y = (density) => bottom - Math.min(density / top, BEYOND) * inner.height * 0.94;
    node.setAttribute("viewBox", `0 0 ${width2} ${height}`);
    replace(
      node,
      svg("title", {}, title),
      svg("desc", {}, description),
      axisOf(range, x, bottom, axis, width2),
      svg("text", { class: "axis-name", x: MARGIN.left, y: 12, "aria-hidden": "true" }, "density"),
      pooled === null ? null : band(pooled, range, x, MARGIN.top, bottom),
      curves.map((curve) => shade(curve, points, x, y, bottom)),
      curves.map((curve) => svg("path", { class: `curve curve-${curve.kind}`, d: line(points, curve.densities, x, y) })),
      curves.filter(({ interval }) => interval !== null).map((curve, row4) => bar(curve, range, x, bottom - 5 - row4 * 9))
    );
  }
  function highest2(curves) {
    const of2 = (some) => Math.max(0, ...some.flatMap(({ densities }) => [...densities].filter(Number.isFinite)));
    const aware = of2(curves.filter(({ interval }) => interval !== null));
    const posterior = of2(curves.filter(({ kind }) => kind !== "prior"));
    return aware > 0 ? Math.min(posterior, HIGHEST * aware) : posterior || of2(curves) || 1;
  }
  function axisOf(range, x, bottom, name, width2) {
    const { values, write } = ticks(...range, width2 < 480 ? 4 : 7);
    return svg(
      "g",
      { class: "axis", "aria-hidden": "true" },
      svg("line", { x1: x(range[0]), x2: x(range[1]), y1: bottom, y2: bottom }),
      values.map((value) => [
        svg("line", { class: "tick", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 }),
        svg("text", { x: x(value), y: bottom + 20, "text-anchor": anchor(x(value), width2) }, write(value))
      ]),
      svg("text", { class: "axis-name", x: width2 / 2, y: bottom + 40, "text-anchor": "middle" }, name)
    );
  }
  function anchor(position, width2) {
    if (position < 30) return "start";
    return position > width2 - 30 ? "end" : "middle";
  }
  function shade({ kind, densities, interval }, points, x, y, bottom) {
    if (interval === null) return null;
    const inside2 = points.flatMap(
      (point, index) => point >= interval[0] && point <= interval[1] ? [[point, densities[index]]] : []
    );
    if (inside2.length < 2) return null;
    const ends2 = [inside2[0], inside2.at(-1)].map(([point]) => x(point).toFixed(2));
    const top = inside2.map(([point, density]) => `${x(point).toFixed(2)},${y(density).toFixed(2)}`);
    return svg("path", {
      class: `shade shade-${kind}`,
      d: `M${ends2[0]},${bottom}L${top.join("L")}L${ends2[1]},${bottom}Z`
    });
  }
  function band({ interval, mean }, range, x, top, bottom) {
    const [low, high] = interval.map((end) => x(Math.min(Math.max(end, range[0]), range[1])));
    const middle = x(Math.min(Math.max(mean, range[0]), range[1]));
    return svg(
      "g",
      { class: "band", "aria-hidden": "true" },
      svg("rect", { x: low, y: top, width: Math.max(high - low, 1), height: bottom - top }),
      svg("line", { x1: middle, x2: middle, y1: top, y2: bottom })
    );
  }
  function bar({ kind, interval, mean }, range, x, at) {
    const [low, high] = interval.map((end) => x(Math.min(Math.max(end, range[0]), range[1])));
    return svg(
      "g",
      { class: `bar bar-${kind}`, "aria-hidden": "true" },
      svg("line", { x1: low, x2: high, y1: at, y2: at }),
      mean !== null && mean >= range[0] && mean <= range[1] ? svg("line", { x1: x(mean), x2: x(mean), y1: at - 5, y2: at + 5 }) : null
    );
  }
  function line(points, densities, x, y) {
    let path = "";
    let isDrawing = false;
    points.forEach((point, index) => {
      if (!Number.isFinite(densities[index])) {
        isDrawing = false;
        return;
      }
      path += `${isDrawing ? "L" : "M"}${x(point).toFixed(2)},${y(densities[index]).toFixed(2)}`;
      isDrawing = true;
    });
    return path;
  }
  function sample(kind) {
    return svg(
      "svg",
      { class: "sample", viewBox: "0 0 32 10", width: 32, height: 10, "aria-hidden": "true", focusable: "false" },
      kind === "together" ? svg("g", { class: "band" }, svg("rect", { x: 4, y: 0, width: 24, height: 10 }), svg("line", { x1: 16, x2: 16, y1: 0, y2: 10 })) : svg("path", { class: `curve curve-${kind}`, d: "M1,5L31,5" })
    );
  }

  // explorer/pool.js
  var CHOICES = [
    { isTogether: false, text: "Each alone" },
    { isTogether: true, text: "Together" }
  ];
  function poolsOf(pools) {
    const read2 = /* @__PURE__ */ new Map();
    return (statistic, cell, entry) => {
      const pool = Object.hasOwn(pools, statistic) ? pools[statistic] : null;
      if (pool === null) return null;
      if (!read2.has(statistic)) read2.set(statistic, new Map(pool.rows.map(({ of: of2, numbers: numbers2 }) => [JSON.stringify(of2), numbers2])));
      const numbers = read2.get(statistic).get(JSON.stringify([...cell, entry]));
      if (numbers === void 0) return null;
      const [mean, sd, low, high, ownShare] = numbers;
      const { others: others2, mass: share3, kind, over_windows: overWindows, is_identified: isIdentified, link, uri } = pool;
      const mass = `${brief(100 * share3, 4)} %`;
      return { mean, sd, interval: [low, high], ownShare, others: others2, overWindows, share: share3, mass, kind, isIdentified, link, uri };
    };
  }
  function pooledOf(page, { question, statistic, entry }) {
    return question.versus === null ? page.pooled(statistic.name, question.cell, entry.key) : null;
  }
  function poolSwitch(ask) {
    const name = freshId("together");
    const inputs = CHOICES.map(
      ({ isTogether }) => element("input", { type: "radio", name, value: String(isTogether), change: () => ask({ together: isTogether }) })
    );
    const choices = CHOICES.map(({ text }, at) => element("label", {}, inputs[at], element("span", {}, text)));
    const hint = element("p", { class: "hint" });
    const legend2 = element("legend", { class: "visually-hidden" }, "How cells are answered");
    const node = element("div", { class: "explorer-pool", hidden: true }, element("fieldset", { class: "switch" }, legend2, choices), hint);
    return {
      node,
      show(pooled, isTogether) {
        node.hidden = pooled === null;
        inputs.forEach((input, at) => input.checked = CHOICES[at].isTogether === isTogether);
        if (pooled !== null) replace(hint, isTogether ? TOGETHER : ALONE);
      }
    };
  }
  var ALONE = "This cell by itself. Together, cells borrow from each other: one that says little leans on what all have in common. It costs no privacy.";
  var TOGETHER = "This cell with all others, as it was published: one that says little leans on what all have in common. A prior that you state moves each alone, and not this.";
  function pooledSentence(page, { question, entry }, pooled) {
    const [low, high] = pooled.interval.map((end) => brief(end, 4));
    const ends2 = ["between ", element("strong", {}, low), " and ", element("strong", {}, high)];
    const cell = inWords(page, question.cell);
    if (entry.isNamed) {
      const unit = entry.unit ? ` ${entry.unit}` : "";
      return [`${entry.title}; ${cell}, together with the other cells: `, ...ends2, `${unit}, with ${pooled.mass} probability.`];
    }
    return [`Together with the other cells: with ${pooled.mass} probability, the ${entry.title} for ${cell} lies `, ...ends2, "."];
  }
  function pooledNotes({ sides }, pooled) {
    const [low, high] = aloneInterval(sides[0].law, pooled).map((end) => brief(end, 4));
    const own = pooled.ownShare === null ? "" : `${Math.round(100 * pooled.ownShare)} % of this answer is the cell's own, and the rest what it has in common with ${pooled.others} others${pooled.overWindows ? ", also of other windows" : ""}. `;
    return [
      pooled.isIdentified ? null : element("div", { class: "banner" }, element("p", {}, UNIDENTIFIED)),
      element(
        "p",
        { class: "hint" },
        `${own}Alone it lies between ${low} and ${high}. `,
        element("a", { href: pooled.link }, "All cells together, and how they were worked out"),
        `. Intervals: ${pooled.kind}.`
      )
    ];
  }
  function aloneInterval(law, { kind, share: share3 }) {
    return kind === "central" ? [(1 - share3) / 2, (1 + share3) / 2].map((at) => law.quantile(at)) : law.interval(share3);
  }
  var UNIDENTIFIED = "The cells do not tell how much they have in common: an assumption decides how much they borrow. Look at each alone first.";

  // explorer/released.js
  var MOST_ROWS = 200;
  function releasedTable(rows) {
    const shown2 = rows.slice(0, MOST_ROWS);
    const caption = shown2.length < rows.length ? `What was released: the first ${MOST_ROWS} of ${rows.length} numbers` : "What was released";
    const heads = ["", "estimate", "standard deviation of its noise"];
    return element(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      element(
        "table",
        {},
        element("caption", {}, caption),
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            heads.map((name) => name ? element("th", { scope: "col" }, name) : element("td"))
          )
        ),
        element("tbody", {}, shown2.map(row))
      )
    );
  }
  function row({ quantity: quantity2, category, component: component2, labels: labels2, estimate: estimate2, noiseSd }) {
    const of2 = [category, component2, ...labels2.map(([variable, key]) => `${variable}=${key}`)].filter(
      (part) => part !== null && part !== ""
    );
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, of2.length === 0 ? quantity2 : `${quantity2} of ${of2.join(", ")}`),
      element("td", {}, written(estimate2, 6)),
      element("td", {}, written(noiseSd, 4))
    );
  }

  // explorer/tables.js
  var ROWS2 = 25;
  var DIGITS = 6;
  function lawTable(page, answer2) {
    const { sides } = answer2;
    const { mass } = answer2.question;
    const [low, high] = answer2.posterior.defaultInterval === "central" ? shares(mass) : ["lower", "upper"].map((end) => `${end} end of ${brief(100 * mass, 4)} %, highest density`);
    const columns = sides.map(({ kind, law, interval }) => ({
      kind,
      name: shortName(page, answer2, kind),
      values: [law.mean, law.sd, ...interval]
    }));
    return columnTable(
      `Posteriors of ${answer2.entry.isNamed ? "" : "the "}${axisName(answer2)}`,
      columns,
      ["mean", "standard deviation", low, high],
      (value, [, sd]) => beside(value, sd)
    );
  }
  function pooledTable({ entry, sides }, pooled) {
    const ends2 = pooled.kind === "central" ? shares(pooled.share) : ["lower", "upper"].map((end) => `${end} end of ${pooled.mass}, ${pooled.kind}`);
    const rows = ["mean", "standard deviation", ...ends2];
    const { law } = sides[0];
    const columns = [
      { kind: "together", name: "Together", values: [pooled.mean, pooled.sd, ...pooled.interval] },
      { kind: "alone", name: "Alone", values: [law.mean, law.sd, ...aloneInterval(law, pooled)] }
    ];
    const caption = `Together with the other cells, and alone: ${entry.isNamed ? "" : "the "}${axisName({ entry })}`;
    return columnTable(caption, columns, rows, (value, [, sd]) => beside(value, sd));
  }
  function comparisonTable(page, answer2, digits) {
    const { question, contrast: contrast2 } = answer2;
    if (question.versus === null || !contrast2) return null;
    const { difference, ratio: ratio2, greater } = contrast2;
    const columns = [
      {
        kind: "difference",
        name: "first minus second",
        values: [difference.mean, difference.sd, ...ends(difference), greater]
      },
      ratio2 === null ? null : { kind: "ratio", name: "first over second", values: [null, null, ...ends(ratio2), greater] }
    ];
    const [low, high] = shares(question.mass);
    const rows = ["mean", "standard deviation", "median", low, high, "probability that the first is greater"];
    return columnTable(
      "Comparison",
      columns.filter((column) => column !== null),
      rows,
      (value) => written(value, digits)
    );
  }
  function ends({ median, lower, upper }) {
    return [median, lower, upper];
  }
  function columnTable(caption, columns, rows, write) {
    const body = rows.map(
      (name, at) => element(
        "tr",
        {},
        element("th", { scope: "row" }, name),
        columns.map(({ kind, values }) => {
          const whole2 = { "data-kind": kind, "data-number": written(values[at], DIGITS) };
          return element("td", whole2, write(values[at], values));
        })
      )
    );
    return table(caption, ["", ...columns.map(({ name }) => name)], body);
  }
  function densityTable({ points, curves }, name) {
    const step = Math.floor((points.length - 1) / ROWS2);
    const rows = points.flatMap(
      (point, index) => index % step === 0 ? [
        row2(
          brief(point, 4),
          curves.map(({ densities }) => densities[index]),
          4
        )
      ] : []
    );
    return table("Densities", ["value", ...curves.map(({ kind }) => name(kind))], rows);
  }
  function shares(mass) {
    return [(1 - mass) / 2, (1 + mass) / 2].map((share3) => `${brief(share3 * 100, 5)} %`);
  }
  function table(caption, heads, rows) {
    return element(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      element(
        "table",
        {},
        element("caption", {}, caption),
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            heads.map((head) => head === "" ? element("td") : element("th", { scope: "col" }, head))
          )
        ),
        element("tbody", {}, rows)
      )
    );
  }
  function row2(name, values, digits) {
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      values.map((value) => element("td", {}, written(value, digits)))
    );
  }

  // explorer/answers.js
  var DIGITS2 = 6;
  var FLAT = 0.015;
  var ALONE2 = "alone";
  function answers(page, ask) {
    const conflict = element("div", { class: "explorer-conflict", role: "status" });
    const ofAll = element("div", { class: "explorer-conflict", role: "status" });
    const pool = poolSwitch(ask);
    const ofPool = element("div", { class: "explorer-pool-notes" });
    const headline = element("p", { class: "explorer-answer" });
    const picture2 = svg("svg", { class: "explorer-picture", role: "img" });
    const keys = element("ul", { class: "legend" });
    const figure = element("figure", { class: "frame" }, keys, picture2);
    const notes = element("div", { class: "explorer-notes" });
    const numbers = element("div", { class: "explorer-tables" });
    const behind = element("details", {}, element("summary", {}, "Numbers behind the picture"));
    const lines = element("div", { class: "explorer-lines" });
    const files = element("p", { class: "explorer-files" });
    const node = element("div", { class: "explorer-answers" }, conflict, ofAll, pool.node, headline, ofPool, figure, numbers, notes, behind, lines, files);
    node.hidden = true;
    let shown2 = null;
    let range = null;
    let about = "";
    let judged2 = "";
    behind.addEventListener("toggle", () => shown2 && fillBehind());
    if (typeof ResizeObserver === "function") new ResizeObserver(() => shown2 && paint()).observe(figure);
    function show(answer2) {
      const isPart = answer2.sides[0].kind === PLUG_IN2;
      if (isPart && shown2 !== null && subjectOf(shown2) === subjectOf(answer2)) return;
      shown2 = answer2;
      node.classList.toggle("is-working", isPart);
      replace(conflict, conflictsOf(page, answer2));
      if (priorOf(answer2) !== judged2) replace(ofAll);
      judged2 = priorOf(answer2);
      answer2.pooled = answer2.question.together && !isPart ? pooledOf(page, answer2) : null;
      pool.show(pooledOf(page, answer2), answer2.question.together);
      replace(headline, ...sentence2(page, answer2));
      replace(ofPool, answer2.pooled && pooledNotes(answer2, answer2.pooled));
      paint();
      replace(numbers, answer2.pooled ? pooledTable(answer2, answer2.pooled) : lawTable(page, answer2), comparisonTable(page, answer2, DIGITS2));
      replace(notes, notesOf(answer2));
      fillBehind();
      const { parameter } = answer2.entry;
      if (answer2.pooled) {
        replace(lines, copied("The same in Python", pooledLines(answer2.question, answer2.pooled)));
        replace(files, element("a", { href: answer2.pooled.link }, "Download all cells together"));
        return;
      }
      replace(
        lines,
        copied("The same in Python", pythonLines(page, answer2.question, parameter)),
        copied("The same on the command line", commandLine(page, answer2.question), commandCode(page, answer2.question)),
        element("p", { class: "hint" }, agreementOf(page, answer2))
      );
      replace(
        files,
        "Download what is shown: ",
        offer("CSV", `${page.name}-${answer2.statistic.name}.csv`, "text/csv", () => asCsv(page, answer2)),
        offer("JSON", `${page.name}-${answer2.statistic.name}.json`, "application/json", () => asJson(page, answer2))
      );
    }
    function paint() {
      const { question, entry, sides, priorDensity } = shown2;
      const laws = sides.map(({ law }) => law);
      const { pooled } = shown2;
      const narrow = question.whole ? aroundPrior(priorDensity, laws, entry.support) : aroundPosteriors(laws, entry.support);
      const wanted = pooled ? reaching(narrow, pooled.interval, entry.support) : narrow;
      const subject = subjectOf(shown2);
      range = settled(subject === about && !question.whole ? range : null, wanted);
      about = subject;
      const points = pointsOf(range);
      const places = inside(points, entry.support);
      const alone = () => ({
        kind: ALONE2,
        densities: laws[0].density(places),
        interval: aloneInterval(laws[0], pooled),
        mean: laws[0].mean
      });
      const curves = pooled ? [alone()] : [
        { kind: "prior", densities: priorDensity(places), interval: null, mean: null },
        ...sides.map(({ kind, law, interval }) => ({
          kind,
          densities: law.density(places),
          interval: kind === PLUG_IN2 ? null : interval,
          mean: law.mean
        }))
      ];
      shown2.curves = { points, curves };
      draw(picture2, {
        points,
        range,
        axis: axisName(shown2),
        title: `Densities of ${axisName(shown2)}`,
        description: `${spoken(page, shown2)} The table after the picture has the numbers.`,
        width: Math.max(280, Math.round(figure.clientWidth || 640)),
        // The prior below, what is asked for on top.
        curves: [...curves].sort((left, right) => layer(left) - layer(right)),
        pooled
      });
      replace(
        keys,
        pooled && element("li", {}, sample("together"), `Together: ${pooled.mass} interval, and the mean`),
        curves.map(
          ({ kind }) => element(
            "li",
            {},
            sample(kind),
            nameOf(page, shown2, kind),
            kind === "prior" && isFlat(curves) ? ", too flat to be seen here" : null
          )
        )
      );
    }
    function fillBehind() {
      const [summary] = behind.children;
      replace(behind, summary, behind.open ? fillings() : null);
    }
    function fillings() {
      return [densityTable(shown2.curves, (kind) => nameOf(page, shown2, kind)), releasedTable(shown2.released)];
    }
    function together2(found) {
      if (found === null) {
        replace(ofAll, shown2.posterior.parameters.length === 1 ? element("p", { class: "hint" }, JUDGING) : null);
        return;
      }
      const isSaid = conflictsOf(page, shown2).length > 0;
      replace(ofAll, isSaid ? null : found.lines.map((line2) => banner(line2)));
    }
    return {
      node,
      show,
      together: together2,
      working: () => node.classList.add("is-working"),
      hide: (isHidden) => node.hidden = isHidden,
      spoken: () => spoken(page, shown2)
    };
  }
  function subjectOf({ statistic, question, entry }) {
    return JSON.stringify([statistic.name, question.cell, question.versus, entry.key, question.whole, question.together]);
  }
  var CLIPPED = "Of the records as the public bounds leave them: a value beyond a bound counts as that bound.";
  var MODELLED = "Counts beyond the public bound were clipped to it before anything was summed. This posterior takes that into account, as Python's does.";
  var MERGED = "Python and the command line agree with these means to a ten-thousandth of the standard deviation; the ends of their intervals hold the stated probability to about a thousandth, which in a long tail may be a fiftieth of the standard deviation.";
  var CATEGORIES = "Python and the command line agree with these means to a ten-thousandth of the standard deviation. Their interval ends of categories are from 4,000 draws, and differ a little at every call: an end that should leave out 2.5 % leaves out between 2.0 and 3.0 %, nineteen times of twenty. The ends shown here are of the law itself.";
  var JUDGING = "Whether all cells together contradict this prior is being worked out.";
  var UNJUDGED = "Whether the prior and what was released contradict each other is not judged here where clipping is modelled; Python does.";
  var TABLED = "This page carries a table of the likelihood, which Python worked out. Python and the command line agree with these means to 0.006 of the standard deviation, and with the ends of their intervals to 0.03 of it.";
  var DRAWN = "Here a difference is worked out by quadrature, as its mean and standard deviation are in Python and on the command line. Their interval and probability are of draws, and agree up to sampling.";
  function agreementOf(page, { statistic, question }) {
    if (question.versus !== null) return DRAWN;
    if (page.likelihoods[statistic.name]) return TABLED;
    return statistic.family === "categorical" ? CATEGORIES : MERGED;
  }
  function nameOf(page, { question }, kind) {
    if (kind === "prior") return "Prior";
    if (kind === ALONE2) return "Alone: noise-aware posterior";
    if (kind === PLUG_IN2) return "Plug-in posterior, which takes the noise for data";
    if (question.versus === null) return "Noise-aware posterior";
    return inWords(page, kind === NOISE_AWARE2 ? question.cell : question.versus);
  }
  function shortName(page, answer2, kind) {
    if (kind === PLUG_IN2) return "Plug-in";
    return answer2.question.versus === null && kind === NOISE_AWARE2 ? "Noise-aware" : nameOf(page, answer2, kind);
  }
  function axisName({ entry }) {
    return entry.title + (entry.unit ? ` (${entry.unit})` : "");
  }
  function sentence2(page, answer2) {
    const { question, entry, sides, contrast: contrast2 } = answer2;
    if (answer2.pooled) return pooledSentence(page, answer2, answer2.pooled);
    const percent2 = brief(question.mass * 100, 4);
    const [low, high] = sides[0].interval.map((end) => brief(end, 4));
    if (sides[0].kind === PLUG_IN2) return ["Summing over everything that the noise may hide\u2026"];
    if (question.versus === null) {
      const cell = inWords(page, question.cell);
      if (entry.isNamed) {
        return [
          `${[entry.title, cell].filter(Boolean).join("; ")}: between `,
          element("strong", {}, low),
          " and ",
          element("strong", {}, high),
          `${entry.unit ? ` ${entry.unit}` : ""}, with ${percent2} % probability.`
        ];
      }
      const of2 = cell === "" ? "" : ` for ${cell}`;
      return [
        `With ${percent2} % probability, the ${entry.title}${of2} lies between `,
        element("strong", {}, low),
        " and ",
        element("strong", {}, high),
        "."
      ];
    }
    const names = [question.cell, question.versus].map((keys) => inWords(page, keys));
    if (contrast2 === void 0) return ["Comparing\u2026"];
    const subject = entry.isNamed ? entry.title : `The ${entry.title}`;
    if (contrast2 === null) return [`${subject} of ${names[0]} and ${names[1]} cannot be compared here.`];
    return [
      `${subject} is greater for ${names[0]} than for ${names[1]} with probability `,
      element("strong", {}, chance(contrast2.greater)),
      "."
    ];
  }
  function conflictsOf(page, { question, sides, posterior, other }) {
    if (sides[0].kind === PLUG_IN2) return [];
    const judged2 = [
      [question.cell, posterior],
      [question.versus, other]
    ];
    return judged2.flatMap(
      ([keys, one]) => (one?.conflict?.lines ?? []).map((line2) => {
        const of2 = question.versus === null ? "" : `${inWords(page, keys)}: `;
        return banner(line2, of2);
      })
    );
  }
  function banner(line2, of2 = "") {
    return element("div", { class: "banner" }, element("p", {}, `${of2}${line2[0].toUpperCase()}${line2.slice(1)}.`));
  }
  var priorOf = ({ statistic, question }) => JSON.stringify([statistic.name, question.prior, question.nPrior]);
  function chance(probability) {
    if (probability < 1e-4) return "below 0.0001";
    return probability > 0.9999 ? "above 0.9999" : brief(probability, 4);
  }
  function spoken(page, answer2) {
    const text = sentence2(page, answer2).map((part) => typeof part === "string" ? part : part.textContent);
    return text.join("");
  }
  function isFlat([prior, ...others2]) {
    const highest3 = (densities) => Math.max(0, ...[...densities].filter(Number.isFinite));
    return highest3(prior.densities) < FLAT * Math.max(...others2.map(({ densities }) => highest3(densities)));
  }
  function layer({ kind }) {
    return ["prior", PLUG_IN2, "versus", NOISE_AWARE2].indexOf(kind);
  }
  var CLIPPING = { ignored: CLIPPED, modelled: MODELLED };
  function notesOf({ prior, nPrior, posterior, pooled }) {
    const said = [
      `${pooled ? "Alone: prior" : "Prior"}: ${prior}.`,
      pooled ? null : `Intervals: ${posterior.defaultInterval}${posterior.defaultInterval === "central" ? "" : ", the shortest"}.`,
      nPrior === null ? null : `Prior of the number of records: ${nPrior}.`
    ];
    return [
      element("p", { class: "hint" }, said.filter(Boolean).join(" ")),
      posterior.conflict === null ? element("p", { class: "hint" }, UNJUDGED) : null,
      CLIPPING[posterior.clipping] ? element("p", { class: "hint" }, CLIPPING[posterior.clipping]) : null
    ];
  }
  function commandCode(page, question) {
    const words = commandWords(page, question).map((word) => [" ", element("span", { class: "word" }, word)]);
    return element("code", {}, words.flat().slice(1));
  }
  function copied(title, text, code = element("code", {}, text)) {
    const button = element("button", { type: "button" }, "Copy");
    button.setAttribute("aria-label", `Copy: ${title.toLowerCase()}`);
    button.addEventListener("click", async () => {
      button.textContent = await copy(text, code) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => button.textContent = "Copy", 2e3);
    });
    return element(
      "div",
      { class: "line" },
      element("div", { class: "head" }, element("h3", {}, title), button),
      element("pre", { tabindex: 0 }, code)
    );
  }
  async function copy(text, node) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      getSelection().selectAllChildren(node);
      return document.execCommand("copy");
    }
  }

  // explorer/column-picture.js
  var MARGIN2 = { top: 24, right: 14, bottom: 44, left: 46 };
  function drawColumn(node, { bins, bands, range, width: width2, axis, quantile, level, isDensity, title }) {
    const height = width2 < 480 ? 160 : 220;
    const bottom = height - MARGIN2.bottom;
    const [low, high] = range;
    const x = (value) => MARGIN2.left + (Math.min(Math.max(value, low), high) - low) / (high - low) * (width2 - MARGIN2.left - MARGIN2.right);
    const shown2 = Array.from(bands, (band2, bin) => ({ ...band2, begin: bins.lower[bin], end: bins.upper[bin], isAtom: bins.isAtom[bin] })).filter(({ begin: begin2, end }) => end >= low && begin2 <= high);
    const most = isDensity ? topOf(shown2) : 1;
    const y = (value) => bottom - Math.min(value / most, 1.02) * (bottom - MARGIN2.top);
    const bodies = shown2.filter(({ isAtom }) => !isAtom);
    node.setAttribute("viewBox", `0 0 ${width2} ${height}`);
    replace(
      node,
      svg("title", {}, title),
      axisOf2({ range, x, y, bottom, width: width2, most, axis, isDensity }),
      bodies.map(({ begin: begin2, end, lower, upper }) => svg("rect", { class: "band", x: x(begin2), width: Math.max(x(end) - x(begin2), 0.5), y: y(upper), height: Math.max(y(lower) - y(upper), 1) })),
      svg("path", { class: "line noise-aware", d: steps(bodies, x, y) }),
      isDensity ? shown2.filter(({ isAtom }) => isAtom).map((atom) => atomOf(atom, x, bottom)) : null,
      isDensity ? null : svg("line", { class: "level", x1: x(low), x2: x(quantile.upper), y1: y(level), y2: y(level) }),
      isDensity ? null : [quantile.lower, quantile.upper].map((end) => svg("line", { class: "level", x1: x(end), x2: x(end), y1: y(level), y2: bottom })),
      svg("line", { class: "half noise-aware", x1: x(quantile.lower), x2: Math.max(x(quantile.upper), x(quantile.lower) + 2), y1: bottom - 2, y2: bottom - 2 })
    );
  }
  function topOf(shown2) {
    const bodies = shown2.filter(({ isAtom }) => !isAtom);
    const uppers = bodies.map(({ upper }) => upper);
    return Math.max(...uppers, 1e-300);
  }
  function atomOf({ begin: begin2, median }, x, bottom) {
    return [
      svg("line", { class: "atom", x1: x(begin2), x2: x(begin2), y1: MARGIN2.top, y2: bottom }),
      svg("text", { class: "tick", x: x(begin2) + 6, y: MARGIN2.top + 9 }, `${(100 * median).toFixed(1)}\xA0%`)
    ];
  }
  function steps(bodies, x, y) {
    return bodies.map(({ begin: begin2, end, median }, i) => `${i === 0 ? "M" : "L"}${x(begin2).toFixed(2)},${y(median).toFixed(2)}L${x(end).toFixed(2)},${y(median).toFixed(2)}`).join("");
  }
  function axisOf2({ range, x, y, bottom, width: width2, most, axis, isDensity }) {
    const across = ticks(...range, width2 < 480 ? 4 : 7);
    const up = ticks(0, most, 3);
    return svg(
      "g",
      { "aria-hidden": "true" },
      up.values.map((value) => [
        svg("line", { class: "grid", x1: x(range[0]), x2: x(range[1]), y1: y(value), y2: y(value) }),
        svg("text", { class: "tick end", x: x(range[0]) - 6, y: y(value) + 4 }, up.write(value))
      ]),
      svg("line", { class: "base", x1: x(range[0]), x2: x(range[1]), y1: bottom, y2: bottom }),
      across.values.map((value) => svg("text", { class: "tick middle", x: x(value), y: bottom + 18 }, across.write(value))),
      svg("text", { class: "axis", x: MARGIN2.left, y: 12 }, isDensity ? "density" : "share up to"),
      svg("text", { class: "axis end", x: width2 - MARGIN2.right, y: bottom + 36 }, axis)
    );
  }

  // explorer/words.js
  var POWERS = { mean: "", scale: "", variance: "\xB2" };
  function wordsOf(about = {}) {
    const found = (map, name) => map && Object.hasOwn(map, name) ? map[name] : void 0;
    const statistic = (name) => found(about.statistics, name) ?? {};
    const keys = (column) => found(about.keys, column) ?? {};
    const calledKey = (column, key) => found(keys(column).values, key) ?? key;
    return {
      statistic: (name) => statistic(name).label ?? name,
      column: (name) => (keys(name).label ?? name) + (keys(name).unit ? ` (${keys(name).unit})` : ""),
      key: calledKey,
      /** A key with the name of its column, where it would say nothing alone; null where nothing is named. */
      cell: (column, key) => {
        if (calledKey(column, key) !== key) return calledKey(column, key);
        return keys(column).label === void 0 ? null : `${keys(column).label} ${key}`;
      },
      /** What a number of a statistic is called, and its unit; null where the statistic has no label. */
      number(name, parameter, category) {
        const words = statistic(name);
        const own = found(words.parameters, parameter) ?? {};
        if (words.label === void 0 && own.label === void 0) return null;
        const value = category === null ? "" : `, ${found(words.values, category) ?? category}`;
        const power = found(POWERS, parameter);
        return {
          title: (own.label ?? `${words.label}, ${parameter.replaceAll("_", " ")}`) + value,
          unit: own.unit ?? (words.unit === void 0 || power === void 0 ? "" : words.unit + power)
        };
      },
      value: (name, category) => found(statistic(name).values, category) ?? category
    };
  }

  // explorer/page-data.js
  function readPage(text) {
    const { label: label2, uri, manifest, about = {}, files, likelihoods = {}, pools = {} } = JSON.parse(text);
    const declared = JSON.parse(manifest);
    const words = wordsOf(about);
    const hierarchies = Object.entries(declared.plan?.hierarchies ?? {});
    const groupsOf2 = (of2) => (of2.groups ?? declared.groups).map((one) => ({
      ...group2(one),
      label: words.column(one.column),
      called: (key) => words.key(one.column, key)
    }));
    return {
      label: label2,
      uri,
      about,
      words,
      name: declared.name,
      loss: declared.rho === void 0 ? { epsilon: declared.epsilon } : { rho: declared.rho },
      releaseId: declared.release_id,
      nIsPublic: declared.n !== null,
      mostRows: declared.max_total_rows,
      publicN: declared.n,
      likelihoods,
      pooled: poolsOf(pools),
      groups: groupsOf2(declared),
      // A posterior sample has no statistics to start from; trees and columns are shown by themselves.
      statistics: declared.statistics.filter(
        ({ mechanism, groups, family }) => mechanism === "discrete_laplace" && groups === void 0 && family !== "histogram"
      ),
      trees: hierarchies.flatMap(([name, levels]) => {
        const leaves = declared.statistics.find((one) => one.name === `${name}.${levels.at(-1)}`);
        const groups = groupsOf2(leaves).filter(({ column }) => column !== levels.at(-1));
        const components = componentsOf(leaves);
        const unit = levels.map((level) => about.statistics?.[`${name}.${level}`]?.unit).find(Boolean) ?? "";
        return components === null ? [] : [{ name, levels, components, groups, unit }];
      }),
      columns: declared.statistics.filter(({ family, mechanism }) => family === "histogram" && mechanism === "discrete_laplace").map((one) => ({
        name: one.name,
        groups: groupsOf2(one),
        unit: about.statistics?.[one.name]?.unit ?? "",
        bounds: [Number(one.parameters.lower), Number(one.parameters.upper)]
      })),
      manifestBytes: new TextEncoder().encode(manifest),
      pathOf: (statistic) => declared.files.find((file) => file.statistic === statistic).path,
      file: (name) => fromBase64(files[name])
    };
  }
  function group2(declared) {
    if (declared.kind === "range") {
      const first = BigInt(declared.first);
      const last = BigInt(declared.last);
      return {
        column: declared.column,
        size: Number(last - first) + 1,
        key: (index) => String(first + BigInt(index)),
        has: (key) => /^-?\d+$/.test(key) && String(BigInt(key)) === key && BigInt(key) >= first && BigInt(key) <= last
      };
    }
    const known = new Set(declared.keys);
    return {
      column: declared.column,
      size: declared.keys.length,
      key: (index) => declared.keys[index],
      has: (key) => known.has(key)
    };
  }
  function matching(group3, typed, most) {
    const wanted = typed.trim().toLowerCase();
    const beginning = [];
    const holding = [];
    let found = 0;
    for (let index = 0; index < group3.size; index += 1) {
      const key = group3.key(index);
      const at = wanted === "" ? 0 : Math.max(key.toLowerCase().indexOf(wanted), group3.called(key).toLowerCase().indexOf(wanted));
      if (at < 0) continue;
      found += 1;
      const list = at === 0 ? beginning : holding;
      if (list.length < most) list.push(key);
    }
    return { keys: [...beginning, ...holding].slice(0, most), found };
  }
  function fromBase64(text) {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
    return bytes;
  }

  // explorer/combobox.js
  var MOST_SHOWN = 50;
  function combobox(group3, id, choose) {
    const listId = freshId("keys");
    const list = element("ul", { id: listId, role: "listbox", "aria-label": group3.label, hidden: true });
    const note = element("p", { class: "hint", id: freshId("found") });
    const field = element("input", {
      id,
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": listId,
      "aria-describedby": note.id,
      input: () => open(field.value),
      focus: () => field.select(),
      click: () => open(""),
      keydown: press,
      blur: close
    });
    let current = "";
    let active = -1;
    function open(typed) {
      const { keys, found } = matching(group3, typed, MOST_SHOWN);
      replace(list, keys.map(option));
      note.textContent = found > keys.length ? `${found} keys match: type more to see the others` : `${found} of ${group3.size} keys`;
      list.hidden = keys.length === 0;
      field.setAttribute("aria-expanded", String(!list.hidden));
      mark(keys.length > 0 && typed.trim() !== "" ? 0 : keys.indexOf(current));
    }
    function option(key) {
      const take = (event) => {
        event.preventDefault();
        commit(key);
      };
      return element("li", { id: freshId("key"), role: "option", "aria-selected": "false", pointerdown: take }, key);
    }
    function mark(index) {
      active = index;
      [...list.children].forEach((child, at) => child.setAttribute("aria-selected", String(at === index)));
      const chosen2 = list.children[index];
      if (chosen2 === void 0) field.removeAttribute("aria-activedescendant");
      else {
        field.setAttribute("aria-activedescendant", chosen2.id);
        chosen2.scrollIntoView({ block: "nearest" });
      }
    }
    function press(event) {
      const size = list.children.length;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (list.hidden) open("");
        else mark((active + (event.key === "ArrowDown" ? 1 : size - 1) + size) % size);
      } else if (event.key === "Enter") {
        event.preventDefault();
        if (!list.hidden && active >= 0) commit(list.children[active].textContent);
        else if (group3.has(field.value)) commit(field.value);
      } else if (event.key === "Escape") {
        close();
        field.select();
      }
    }
    function commit(key) {
      current = key;
      close();
      choose(key);
    }
    function close() {
      if (field.value !== current && group3.has(field.value) && document.activeElement !== field) {
        current = field.value;
        choose(current);
      }
      list.hidden = true;
      field.value = current;
      note.textContent = `${group3.size} keys: type to search`;
      field.setAttribute("aria-expanded", "false");
      field.removeAttribute("aria-activedescendant");
    }
    return {
      node: element("div", { class: "combobox" }, field, list, note),
      show(key) {
        current = key;
        if (document.activeElement !== field || list.hidden) close();
      }
    };
  }

  // explorer/scales.js
  var STEPS3 = 1e3;
  function linear(low, high) {
    return {
      low,
      high,
      number: (position) => low + (high - low) * position / STEPS3,
      position: (number2) => clamp((number2 - low) / (high - low) * STEPS3)
    };
  }
  function logarithmic(low, high) {
    const span = Math.log(high / low);
    return {
      low,
      high,
      number: (position) => low * Math.exp(span * position / STEPS3),
      position: (number2) => number2 > 0 ? clamp(Math.log(number2 / low) / span * STEPS3) : 0
    };
  }
  function share2(least) {
    const reach2 = Math.log((1 - least) / least);
    return {
      low: least,
      high: 1 - least,
      number: (position) => 1 / (1 + Math.exp(reach2 * (1 - 2 * position / STEPS3))),
      position: (number2) => clamp((Math.log(number2 / (1 - number2)) / reach2 + 1) * (STEPS3 / 2))
    };
  }
  function clamp(position) {
    return Math.min(STEPS3, Math.max(0, Math.round(position)));
  }

  // explorer/fields.js
  var MOST_OPTIONS = 40;
  function labelled(name, control, hint = null) {
    const hintId = hint === null ? null : freshId("hint");
    if (hintId !== null) control.setAttribute("aria-describedby", hintId);
    control.id ||= freshId("field");
    return element(
      "div",
      { class: "field" },
      element("label", { for: control.id }, name),
      control,
      hint === null ? null : element("p", { class: "hint", id: hintId }, hint)
    );
  }
  function choice(name, options, choose, hint = null) {
    const control = element("select", { change: () => choose(control.value) });
    const fill = (some) => replace(
      control,
      some.map(({ value, text }) => element("option", { value }, text))
    );
    fill(options);
    return {
      node: labelled(name, control, hint),
      fill,
      show: (value) => {
        control.value = value;
      }
    };
  }
  function keyField(group3, choose) {
    if (group3.size > MOST_OPTIONS) {
      const id = freshId("key");
      const { node, show } = combobox(group3, id, choose);
      return { node: element("div", { class: "field" }, element("label", { for: id }, group3.label), node), show };
    }
    const keys = Array.from({ length: group3.size }, (_, index) => group3.key(index));
    const field = choice(
      group3.label,
      keys.map((key, index) => ({ value: String(index), text: group3.called(key) })),
      (at) => choose(keys[Number(at)])
    );
    return { node: field.node, show: (key) => field.show(String(keys.indexOf(key))) };
  }
  function textField(name, change, hint) {
    const complaint = element("p", { class: "complaint", id: freshId("complaint"), hidden: true });
    const control = element("input", {
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      input: () => change(control.value)
    });
    const node = labelled(name, control, hint);
    control.setAttribute("aria-describedby", `${control.getAttribute("aria-describedby")} ${complaint.id}`);
    node.append(complaint);
    return {
      node,
      show(text) {
        if (document.activeElement !== control) control.value = text;
      },
      value: () => control.value,
      put(text) {
        control.value = text;
      },
      complain(message) {
        complaint.textContent = message ?? "";
        complaint.hidden = message === null;
        control.setAttribute("aria-invalid", String(message !== null));
      }
    };
  }
  function numberField(name, { low, high, step }, change, hint = null) {
    const read2 = () => {
      if (control.validity.valid && control.value !== "") change(control.valueAsNumber);
    };
    const control = element("input", { type: "number", min: low, max: high, step, required: true, input: read2 });
    return {
      node: labelled(name, control, hint),
      show(value) {
        if (document.activeElement !== control) control.value = String(value);
      }
    };
  }
  function tick(name, change) {
    const id = freshId("tick");
    const control = element("input", { type: "checkbox", id, change: () => change(control.checked) });
    return {
      node: element("div", { class: "tick" }, control, element("label", { for: id }, name)),
      show(isTicked) {
        control.checked = isTicked;
      }
    };
  }
  function slider({ name, hint, scale: scale2 }, change) {
    const id = freshId("slider");
    const shown2 = element("output", { for: id });
    const control = element("input", {
      id,
      type: "range",
      min: 0,
      max: STEPS3,
      step: 1,
      input: () => change(scale2.number(control.valueAsNumber))
    });
    const hintId = freshId("hint");
    control.setAttribute("aria-describedby", hintId);
    return {
      node: element(
        "div",
        { class: "field slider" },
        element("div", { class: "head" }, element("label", { for: id }, name), shown2),
        control,
        element("p", { class: "hint", id: hintId }, hint)
      ),
      show(value) {
        shown2.textContent = brief(value, 4);
        control.setAttribute("aria-valuetext", brief(value, 4));
        if (document.activeElement !== control || Math.abs(scale2.number(control.valueAsNumber) - value) > 0.01 * Math.abs(value)) {
          control.value = String(scale2.position(value ?? scale2.low));
        }
      }
    };
  }

  // explorer/parts.js
  function latest(node, complaint) {
    let turn = 0;
    return async (make, show) => {
      turn += 1;
      const mine = turn;
      const pause = async () => {
        await nextTask();
        if (mine !== turn) throw new Overtaken();
      };
      node.classList.add("is-working");
      try {
        await pause();
        const found = await make(pause);
        await pause();
        replace(complaint);
        node.hidden = false;
        show(found);
        node.classList.remove("is-working");
      } catch (error) {
        if (error instanceof Overtaken || mine !== turn) return;
        node.hidden = true;
        const said = error instanceof Error && error.code ? error.message : "this browser cannot work it out";
        replace(complaint, element("p", { class: "complaint" }, `${said[0].toUpperCase()}${said.slice(1)}.`));
      }
    };
  }
  function sameElsewhere(words, python) {
    const command = words.map(shellWord).join(" ");
    return element(
      "details",
      {},
      element("summary", {}, "The same in Python and on the command line"),
      element("div", { class: "explorer-lines" }, copied("The same in Python", python), copied("The same on the command line", command))
    );
  }
  var percent = (mass) => `${Number((100 * mass).toPrecision(6))}\xA0%`;

  // explorer/column-section.js
  var QUIET = 700;
  var OF = [
    { value: "law", text: "the law behind records" },
    { value: "rows", text: "the counted records" }
  ];
  function columnSection(page, reader) {
    const kinds = OF.map(({ value }) => value);
    const fromAddress = () => columnFromHash(location.hash, page, kinds);
    const asked = fromAddress();
    const statistic = choice("Column", page.columns.map(({ name }) => ({ value: name, text: page.words.statistic(name) })), (name) => choose(name));
    const cell = element("div", { class: "cell" });
    const of2 = choice("Asked of", OF, (value) => change({ of: value }));
    const level = slider({ name: "Quantile", hint: "The value below which this share of records lies.", scale: share2(1e-3) }, (value) => change({ level: Number(value.toPrecision(3)) }, true));
    const least = numberField("Share of records of at least", { step: "any" }, (value) => change({ least: value }, true));
    const mass = numberField(
      "Probability of intervals, in %",
      { low: 0.1, high: 99.9, step: "any" },
      (value) => change({ mass: Number((value / 100).toPrecision(12)) }, true)
    );
    const prior = textField("Steps of the walk over bins", (text) => change({ prior: text }), `A prior, as BinWalk(0.1, 0.4); empty for ${DEFAULT_WALK}: how much neighbouring bins differ, in logarithms.`);
    const whole2 = tick("Show all bins", (isOn) => change({ whole: isOn }, true));
    const form2 = element(
      "form",
      { class: "explorer-form", "aria-label": "Which column", submit: (event) => event.preventDefault() },
      element("fieldset", {}, element("legend", {}, "Column"), page.columns.length > 1 ? statistic.node : null, cell, of2.node),
      element("fieldset", {}, element("legend", {}, "Asked"), level.node, least.node),
      element("fieldset", {}, element("legend", {}, "Prior"), prior.node),
      element("fieldset", {}, element("legend", {}, "Shown as"), mass.node, whole2.node)
    );
    const headline = element("p", { class: "explorer-answer" });
    const density = svg("svg", { class: "explorer-picture figure", role: "img" });
    const cumulated2 = svg("svg", { class: "explorer-picture figure", role: "img" });
    const figure = element("figure", { class: "frame" }, density, cumulated2);
    const numbers = element("div", { class: "explorer-tables" });
    const after = element("div", { class: "explorer-lines" });
    const answered = element("div", { class: "explorer-answers" }, headline, figure, numbers, after);
    const complaint = element("div", { role: "status" });
    const voice = element("p", { class: "visually-hidden", role: "status" });
    const ask = latest(answered, complaint);
    let column = null;
    let bands = null;
    let quiet = null;
    if (typeof ResizeObserver === "function") new ResizeObserver(() => column !== null && show()).observe(figure);
    begin2(asked);
    addEventListener("hashchange", () => {
      const wanted = fromAddress();
      const fieldsOf2 = (question) => JSON.stringify(columnFields(question, kinds[0]));
      if (fieldsOf2(wanted) !== fieldsOf2(asked)) begin2(wanted);
    });
    function begin2(question) {
      const { groups } = page.columns.find((one) => one.name === question.name);
      replace(cell, groups.map((group3) => {
        const field = keyField(group3, (key) => change({ where: { ...asked.where, [group3.column]: key } }));
        field.show(question.where[group3.column]);
        return field.node;
      }));
      column = null;
      change(question, false, false);
    }
    function choose(name) {
      const { groups } = page.columns.find((one) => one.name === name);
      begin2({ ...asked, name, where: Object.fromEntries(groups.map((group3) => [group3.column, group3.key(0)])), least: null });
      remember(withPart(location.hash, COLUMNS, columnFields(asked, kinds[0])));
    }
    function change(patch, isOfTheSame = false, isRemembered = true) {
      Object.assign(asked, patch);
      if (isRemembered) remember(withPart(location.hash, COLUMNS, columnFields(asked, kinds[0])));
      statistic.show(asked.name);
      of2.show(asked.of);
      level.show(asked.level);
      least.show(asked.least ?? "");
      mass.show(Number((asked.mass * 100).toPrecision(12)));
      whole2.show(asked.whole);
      prior.show(asked.prior);
      if (isOfTheSame && column !== null) {
        show();
        return;
      }
      const options = { where: asked.where, of: asked.of, ...asked.prior ? { prior: asked.prior } : {} };
      ask((pause) => reader.column(asked.name, options, pause), (found) => {
        asked.least ??= Number(found.quantile(0.9, asked.mass).upper);
        column = found;
        bands = null;
        least.show(asked.least);
        show();
      });
    }
    function show() {
      const within2 = asked.mass;
      if (bands?.mass !== within2) bands = { mass: within2, density: column.density(within2), cumulated: column.distributionFunction(within2) };
      const quantile = column.quantile(asked.level, within2);
      const tail = column.tailShare(asked.least, within2);
      const { unit } = page.columns.find((one) => one.name === asked.name);
      const name = page.words.statistic(asked.name) + (unit ? ` (${unit})` : "");
      replace(headline, sentence3(name, quantile));
      const range = asked.whole ? [column.bins.lower[0], column.bins.upper.at(-1)] : middleOf(column, quantile);
      const width2 = Math.max(280, Math.round(figure.clientWidth || 640) - 2);
      const shared = { bins: column.bins, range, width: width2, axis: name, quantile, level: asked.level };
      drawColumn(density, { ...shared, bands: bands.density, isDensity: true, title: `Density of ${name}, with a band of ${percent(within2)}` });
      drawColumn(cumulated2, { ...shared, bands: bands.cumulated, isDensity: false, title: `Distribution function of ${name}, with a band of ${percent(within2)}` });
      replace(numbers, tableOf([
        [`${brief(asked.level, 4)} quantile`, quantile],
        [`share of ${brief(asked.least, 6)} or more`, tail],
        ["median", column.median(within2)],
        ["upper quartile less lower", column.interquantileRange(0.25, 0.75, within2)],
        ["mean, within the bounds", column.mean(within2)]
      ], within2));
      replace(
        after,
        element("p", { class: "hint" }, notesOf2(quantile, column)),
        sameElsewhere(...linesOf2(page, asked))
      );
      clearTimeout(quiet);
      quiet = setTimeout(() => voice.textContent = headline.textContent, QUIET);
    }
    function sentence3(name, { lower, upper, isRefused }) {
      const subject = `the ${percent(asked.level)} quantile of ${name}`;
      if (isRefused) return [`${subject[0].toUpperCase()}${subject.slice(1)} is not known within half of its range: between ${written(lower, 5)} and ${written(upper, 5)}.`];
      if (lower === upper) return [`With ${percent(asked.mass)} probability, ${subject} is `, element("strong", {}, brief(lower, 6)), "."];
      return [
        `With ${percent(asked.mass)} probability or more, ${subject} lies between `,
        element("strong", {}, brief(lower, 6)),
        " and ",
        element("strong", {}, brief(upper, 6)),
        "."
      ];
    }
    return { title: "Explore the columns", lead: LEAD, node: element("div", { class: "explorer-body" }, form2, element("div", { class: "explorer-right" }, complaint, answered, voice)) };
  }
  var LEAD = "One noisy count for each bin, and every quantile from them: bands hold what density and distribution function can be. Move the slider and ask.";
  function middleOf(column, quantile) {
    const [low, high] = [column.quantile(4e-3).lower, column.quantile(0.985).upper];
    return [Math.min(low, quantile.lower), Math.max(high, quantile.upper)];
  }
  function notesOf2({ isRefused }, column) {
    const rows = column.of === "rows" ? "Of the records that were counted: no sampling error is in it." : "Of the law that records come from.";
    const refused4 = isRefused ? " An answer whose interval spans half of what it can be is refused." : "";
    return `${rows}${refused4} From ${column.shares.length.toLocaleString("en")} draws, the same at every call: ends of intervals are edges of bins, and may differ by a bin from Python's, which are of other draws.`;
  }
  function tableOf(rows, mass) {
    const head = ["", "median", "lower", "upper"];
    return element(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers" },
      element(
        "table",
        {},
        element("caption", {}, `Intervals of ${percent(mass)}`),
        element("thead", {}, element("tr", {}, head.map((name) => name ? element("th", { scope: "col" }, name) : element("td")))),
        element("tbody", {}, rows.map(([name, { median, lower, upper }]) => element("tr", {}, element("th", { scope: "row" }, name), [median, lower, upper].map((value) => element("td", {}, written(value, 4))))))
      )
    );
  }
  function linesOf2(page, { name, where, of: of2, level, least, mass, prior }) {
    const places = Object.entries(where);
    const words = ["suffice", "quantiles", page.uri, name, ...places.flatMap(([column, key]) => ["--where", `${column}=${key}`])];
    words.push("--at", String(level), "--at-least", String(least), "--mass", String(mass));
    if (prior) words.push("--prior", prior);
    if (of2 === "rows") words.push("--of-rows");
    const terms = [pythonText(name)];
    if (prior) terms.push(`prior=${pythonText(prior)}`);
    if (places.length > 0) terms.push(`where={${places.map(([column, key]) => `${pythonText(column)}: ${pythonText(key)}`).join(", ")}}`);
    const python = [
      "import suffice",
      "",
      `release = suffice.open_release(${pythonText(page.uri)})`,
      `column = release.posterior(${terms.join(", ")}).column(${of2 === "rows" ? 'of="rows"' : ""})`,
      `print(column.quantile(${level}, ${mass}))`,
      `print(column.tail_share(${least}, ${mass}))`
    ].join("\n");
    return [words, python];
  }

  // explorer/count-control.js
  var KINDS3 = [
    { value: "default", text: "nothing" },
    { value: "between", text: "a range" },
    { value: "known", text: "the number" }
  ];
  function countControl(mostRows, change) {
    let asked = { kind: "default", low: 0, high: 1e3, known: 100 };
    const set = (patch) => {
      asked = { ...asked, ...patch };
      change(written2(asked));
      reveal();
    };
    const limits = { low: 0, high: Math.min(mostRows, 1e15), step: 1 };
    const kind = choice("What you know of it beforehand", KINDS3, (value) => set({ kind: value }));
    const low = numberField("At least", limits, (value) => set({ low: value, high: Math.max(value, asked.high) }));
    const high = numberField("At most", limits, (value) => set({ high: value, low: Math.min(value, asked.low) }));
    const known = numberField("Number of records", limits, (value) => set({ known: value }));
    function reveal() {
      kind.show(asked.kind);
      [low, high].forEach(({ node }) => node.hidden = asked.kind !== "between");
      known.node.hidden = asked.kind !== "known";
      low.show(asked.low);
      high.show(asked.high);
      known.show(asked.known);
    }
    return {
      node: element(
        "fieldset",
        {},
        element("legend", {}, "Number of records"),
        kind.node,
        low.node,
        high.node,
        known.node
      ),
      show(text) {
        if (text !== written2(asked)) asked = { ...asked, ...read(text) };
        reveal();
      }
    };
  }
  function written2({ kind, low, high, known }) {
    if (kind === "between") return `Uniform(${low}, ${high})`;
    return kind === "known" ? String(known) : "";
  }
  function read(text) {
    const between = /^\s*Uniform\(\s*(?:lower\s*=\s*)?(\d{1,16})\s*,\s*(?:upper\s*=\s*)?(\d{1,16})\s*\)\s*$/.exec(text);
    if (between !== null) return { kind: "between", low: Number(between[1]), high: Number(between[2]) };
    return /^\s*\d{1,16}\s*$/.test(text) ? { kind: "known", known: Number(text) } : { kind: "default" };
  }

  // explorer/priors.js
  var FIELDS2 = {
    Beta: ["concentration1", "concentration0"],
    Gamma: ["concentration", "rate"],
    InverseGamma: ["concentration", "scale"],
    Normal: ["loc", "scale"],
    Dirichlet: null,
    NormalInverseGamma: ["loc", "precision", "concentration", "scale"],
    ScaleMixture: ["lower", "upper"],
    SpreadGamma: ["upper"],
    SpreadInverseGamma: ["upper"]
  };
  var NUMBER2 = /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  function readPrior(text) {
    const call = /^\s*([A-Za-z]+)\s*\(([^()]*)\)\s*$/.exec(text);
    if (call === null || !Object.hasOwn(FIELDS2, call[1])) return null;
    const fields = FIELDS2[call[1]];
    const numbers = [];
    for (const [index, argument] of call[2].replace(/,\s*$/, "").split(",").entries()) {
      const [value, keyword] = argument.split("=").map((part) => part.trim()).reverse();
      const at = keyword === void 0 ? index : (fields ?? []).indexOf(keyword);
      if (at < 0 || numbers[at] !== void 0 || !NUMBER2.test(value)) return null;
      numbers[at] = Number(value.replaceAll("_", ""));
    }
    if (fields !== null && numbers.length !== fields.length) return null;
    const isPositive = (index) => call[1] === "ScaleMixture" || fields?.[index] === "loc" || numbers[index] > 0;
    return [...numbers.keys()].every((index) => Number.isFinite(numbers[index]) && isPositive(index)) ? { name: call[1], numbers } : null;
  }
  function writePrior({ name, numbers }) {
    return `${name}(${numbers.map((number2) => String(rounded(number2))).join(", ")})`;
  }
  function slidersOf(prior, statistic, usual, entry) {
    const make = SLIDERS[prior.name];
    return make === void 0 ? [] : make({ statistic, usual: usual ?? prior, entry });
  }
  var records = (family) => family === "poisson" ? "counts like so many records" : "the larger, the narrower";
  var strength = (change, value, hint) => ({ name: "Strength", hint, scale: logarithmic(0.1, 1e5), value, change });
  var SLIDERS = {
    Beta: () => [
      {
        name: "Mean",
        hint: "where the prior is centred",
        scale: share2(1e-3),
        value: ([a, b]) => a / (a + b),
        change: ([a, b], mean) => [mean * (a + b), (1 - mean) * (a + b)]
      },
      strength(
        ([a, b], sum) => [sum * a / (a + b), sum * b / (a + b)],
        ([a, b]) => a + b,
        "counts like so many records"
      )
    ],
    Dirichlet: ({ statistic, entry }) => {
      const size = Math.max(2, statistic.parameters.categories.length);
      const all = (numbers) => numbers.length === 1 ? Array(size).fill(numbers[0]) : numbers;
      const sum = (numbers) => all(numbers).reduce((left, right) => left + right, 0);
      return [
        {
          name: "Mean of this category",
          hint: "the others share the rest as before",
          scale: share2(1e-3),
          value: (numbers) => all(numbers)[entry] / sum(numbers),
          change: (numbers, mean) => {
            const total = sum(numbers);
            const rest = total - all(numbers)[entry];
            return all(numbers).map(
              (each, index) => index === entry ? mean * total : (1 - mean) * total * each / rest
            );
          }
        },
        strength(
          (numbers, total) => numbers.map((each) => each * total / sum(numbers)),
          sum,
          "counts like so many records"
        )
      ];
    },
    Gamma: ({ statistic, usual }) => {
      const centre = usual.name === "SpreadGamma" ? 10 / usual.numbers[0] : usual.numbers[0] / usual.numbers[1];
      const mean = {
        name: "Mean",
        hint: "where the prior is centred",
        scale: logarithmic(centre / 1e3, centre * 1e3),
        value: ([a, b]) => a / b
      };
      return statistic.family === "poisson" ? [
        { ...mean, change: ([, b], value) => [value * b, b] },
        strength(
          ([a, b], value) => [a / b * value, value],
          ([, b]) => b,
          records(statistic.family)
        )
      ] : [
        { ...mean, change: ([a], value) => [a, a / value] },
        strength(
          ([a, b], value) => [value, value * b / a],
          ([a]) => a,
          records(statistic.family)
        )
      ];
    },
    InverseGamma: ({ usual }) => {
      const isSpread = usual.name === "SpreadInverseGamma";
      const centre = isSpread ? usual.numbers[0] / 10 : usual.numbers[1] / Math.max(usual.numbers[0] - 1, 0.1);
      return [
        {
          name: "Mean",
          hint: "where the prior is centred",
          scale: logarithmic(centre / 1e3, centre * 1e3),
          value: ([a, scale2]) => a > 1 ? scale2 / (a - 1) : null,
          change: ([a], mean) => [Math.max(a, 1.1), mean * (Math.max(a, 1.1) - 1)]
        },
        {
          name: "Strength",
          hint: "the larger, the narrower",
          scale: logarithmic(1.1, 1e5),
          value: ([a]) => a,
          change: ([a, scale2], value) => [value, a > 1 ? scale2 / (a - 1) * (value - 1) : scale2]
        }
      ];
    },
    Normal: ({ statistic, usual }) => {
      const spread2 = usual.numbers[1];
      return [
        location2(statistic, (numbers, loc) => [loc, numbers[1]]),
        {
          name: "Standard deviation",
          hint: "the smaller, the stronger",
          scale: logarithmic(spread2 / 1e4, spread2 * 10),
          value: ([, scale2]) => scale2,
          change: ([loc], scale2) => [loc, scale2]
        }
      ];
    },
    NormalInverseGamma: ({ statistic }) => {
      const range = width(statistic);
      return [
        location2(statistic, ([, ...rest], loc) => [loc, ...rest]),
        strength(
          ([loc, , ...rest], value) => [loc, value, ...rest],
          ([, precision]) => precision,
          "of the mean: counts like so many records"
        ),
        {
          name: "Mean of the variance",
          hint: "how far records are apart",
          scale: logarithmic(range * range / 1e8, range * range),
          value: ([, , a, scale2]) => a > 1 ? scale2 / (a - 1) : null,
          change: ([loc, precision, a], mean) => [loc, precision, Math.max(a, 1.1), mean * (Math.max(a, 1.1) - 1)]
        }
      ];
    },
    SpreadGamma: ({ usual }) => [largest2(usual, "one over the rate")],
    SpreadInverseGamma: ({ usual }) => [largest2(usual, "the scale")],
    ScaleMixture: ({ statistic }) => {
      const [low, high] = bounds2(statistic);
      const reach2 = linear(low - (high - low), high + (high - low));
      const least = (high - low) / 1e3;
      return [
        {
          name: "From",
          hint: "means and spreads of every size from here",
          scale: reach2,
          value: ([lower]) => lower,
          change: ([, upper], lower) => [Math.min(lower, upper - least), upper]
        },
        {
          name: "To",
          hint: "to here",
          scale: reach2,
          value: ([, upper]) => upper,
          change: ([lower], upper) => [lower, Math.max(upper, lower + least)]
        }
      ];
    }
  };
  function largest2(usual, what) {
    const centre = usual.name.startsWith("Spread") ? usual.numbers[0] : 1;
    return {
      name: "Up to",
      hint: `${what} is of any size up to here`,
      scale: logarithmic(centre / 1e4, centre * 10),
      value: ([upper]) => upper,
      change: (_numbers, upper) => [upper]
    };
  }
  function location2(statistic, change) {
    const [low, high] = bounds2(statistic);
    return { name: "Mean", hint: "where the prior is centred", scale: linear(low, high), value: ([loc]) => loc, change };
  }
  function bounds2({ family, parameters }) {
    const ends2 = [Number(parameters.lower), Number(parameters.upper)];
    return family === "lognormal" ? ends2.map(Math.log) : ends2;
  }
  function width(statistic) {
    const [low, high] = bounds2(statistic);
    return high - low;
  }

  // explorer/prior-control.js
  function priorControl(change) {
    const sliders = element("div", { class: "sliders" });
    const instead = element("p", { class: "hint", hidden: true }, "No slider sets this prior: its text does.");
    const text = textField("As text", (typed) => change(typed.trim()), "as in Python and on the command line");
    const reset = element("button", { type: "button", click: () => change("") }, "Back to the default prior");
    let shown2 = { made: "", fields: [] };
    function show({ text: asked, usual, statistic, entry }) {
      const written3 = asked === "" ? usual : asked;
      if (asked === "") text.put(written3);
      else text.show(written3);
      reset.hidden = asked === "" || asked === usual;
      const prior = readPrior(written3);
      const made = prior === null ? "" : `${statistic.name} ${prior.name} ${entry}`;
      if (made !== shown2.made) shown2 = { made, fields: build(prior, statistic, usual, entry) };
      shown2.fields.forEach(({ field, of: of2 }) => field.show(of2.value(prior.numbers)));
      instead.hidden = prior !== null;
    }
    function build(prior, statistic, usual, entry) {
      const fields = prior === null ? [] : slidersOf(prior, statistic, sameKind(usual, prior), entry).map(fieldOf);
      replace(
        sliders,
        fields.map(({ field }) => field.node)
      );
      return fields;
    }
    function fieldOf(of2) {
      const field = slider(of2, (value) => {
        const prior = current();
        const next = writePrior({ name: prior.name, numbers: of2.change(prior.numbers, value) });
        text.put(next);
        change(next);
      });
      return { field, of: of2 };
    }
    function current() {
      return readPrior(text.value());
    }
    return {
      node: element("fieldset", {}, element("legend", {}, "Prior"), sliders, instead, text.node, reset),
      show,
      complain: text.complain
    };
  }
  function sameKind(usual, prior) {
    const read2 = readPrior(usual);
    return read2 !== null && read2.name === prior.name ? read2 : null;
  }

  // explorer/form.js
  function form(page, ask) {
    const statistic = choice(
      "Statistic",
      page.statistics.map(({ name }) => ({ value: name, text: page.words.statistic(name) })),
      (name) => ask({ statistic: name, prior: "", nPrior: "", shown: "" })
    );
    const first = cellFields(page, (cell) => ask({ cell }));
    const second = cellFields(page, (versus2) => ask({ versus: versus2 }));
    const compare2 = tick(
      "Compare with another cell",
      (isOn) => ask({ versus: isOn ? otherCell(page, asked.cell) : null })
    );
    const entry = choice("Shown", [], (shown2) => ask({ shown: shown2 }));
    const prior = priorControl((text) => ask({ prior: text }));
    const count2 = page.nIsPublic ? null : countControl(page.mostRows, (nPrior) => ask({ nPrior }));
    const mass = numberField(
      "Probability of intervals, in %",
      { low: 0.1, high: 99.9, step: "any" },
      (percent2) => ask({ mass: Number((percent2 / 100).toPrecision(12)) })
    );
    const whole2 = tick("Show the whole prior", (isOn) => ask({ whole: isOn }));
    let asked = null;
    const versus = element("fieldset", { hidden: true }, element("legend", {}, "Compared with"), second.node);
    const cells = element(
      "fieldset",
      {},
      element("legend", {}, "Cell"),
      first.node,
      hasOthers(page) ? compare2.node : null
    );
    const node = element(
      "form",
      { class: "explorer-form", "aria-label": "What is asked", submit: (event) => event.preventDefault() },
      page.statistics.length > 1 ? statistic.node : null,
      page.groups.length > 0 ? cells : null,
      versus,
      entry.node,
      prior.node,
      count2?.node,
      element("fieldset", {}, element("legend", {}, "Shown as"), mass.node, whole2.node)
    );
    return {
      node,
      /** Show a question; `entries` are what the posterior has, `usual` is the default prior's text. */
      show(question, { entries, usual, statistic: declared, isAnswered }) {
        asked = question;
        statistic.show(question.statistic);
        first.show(question.cell);
        if (question.versus !== null) second.show(question.versus);
        versus.hidden = question.versus === null;
        compare2.show(question.versus !== null);
        entry.fill(entries.map(({ key, label: label2 }) => ({ value: key, text: label2 })));
        entry.show(question.shown);
        entry.node.hidden = entries.length < 2;
        [prior.node, count2?.node, whole2.node].forEach((part) => part && (part.hidden = !isAnswered));
        if (count2 !== null && page.likelihoods[declared.name]) count2.node.hidden = true;
        if (isAnswered) {
          const index = Math.max(
            0,
            entries.findIndex(({ key }) => key === question.shown)
          );
          prior.show({ text: question.prior, usual, statistic: declared, entry: entries[index]?.index ?? 0 });
        }
        count2?.show(question.nPrior);
        mass.show(Number((question.mass * 100).toPrecision(12)));
        whole2.show(question.whole);
      },
      complain: prior.complain
    };
  }
  function cellFields(page, change) {
    let keys = page.groups.map((group3) => group3.key(0));
    const fields = page.groups.map(
      (group3, index) => keyField(group3, (key) => change(keys.map((old, at) => at === index ? key : old)))
    );
    return {
      node: replace(
        element("div", { class: "cell" }),
        fields.map(({ node }) => node)
      ),
      show(shown2) {
        keys = shown2;
        fields.forEach((field, index) => field.show(shown2[index]));
      }
    };
  }
  function hasOthers(page) {
    return page.groups.some(({ size }) => size > 1);
  }
  function otherCell(page, cell) {
    const at = page.groups.findIndex(({ size }) => size > 1);
    return cell.map((key, index) => {
      if (index !== at) return key;
      return page.groups[at].key(0) === key ? page.groups[at].key(1) : page.groups[at].key(0);
    });
  }

  // explorer/preparing.js
  var STRONGER = 1.3;
  async function prepare(reader, statistic, question, usual, isOvertaken) {
    const prior = nearby(readPrior(question.prior || usual), statistic);
    if (prior === null || statistic.family === "categorical") return;
    const pause = async () => {
      await nextTask();
      if (isOvertaken()) throw new Overtaken();
    };
    for (const cell of [question.cell, question.versus]) {
      if (cell !== null) {
        const asked = { prior, nPrior: question.nPrior, method: NOISE_AWARE2, parameters: [] };
        await reader.posterior(statistic.name, cell, asked, pause);
      }
    }
  }
  function nearby(prior, statistic) {
    if (prior === null) return null;
    const slider2 = slidersOf(prior, statistic, prior, 0).at(-1);
    const value = slider2?.value(prior.numbers) ?? null;
    return value === null ? null : writePrior({ name: prior.name, numbers: slider2.change(prior.numbers, value * STRONGER) });
  }

  // explorer/tree-section.js
  var MOST_SHOWN2 = 60;
  var WIDTH = 240;
  var HEIGHT = 26;
  var POPULATIONS2 = [
    { value: "contaminated", text: "rates of one population, some outliers" },
    { value: "zero-inflated", text: "rates, some leaves are empty" },
    { value: "negative-binomial", text: "rates of one population" },
    { value: "reciprocal", text: "weights 1 / (n + 1)" }
  ];
  function treeSection(page, reader) {
    const fromAddress = () => treeFromHash(location.hash, page, POPULATIONS2.map(({ value }) => value));
    const asked = fromAddress();
    const tree = choice("Tree", page.trees.map(({ name }) => ({ value: name, text: page.words.statistic(name) })), (name) => choose(name));
    const beside2 = element("div", { class: "cell" });
    const component2 = choice("Counted", [], (name) => change({ component: name }));
    const population = choice(
      "Leaves are drawn from",
      POPULATIONS2,
      (name) => change({ population: name }),
      "A prior of the leaves, whose mean and spread, and share of empty ones, are integrated over."
    );
    const mass = numberField(
      "Probability of intervals, in %",
      { low: 0.1, high: 99.9, step: "any" },
      (of2) => change({ mass: Number((of2 / 100).toPrecision(12)) })
    );
    const which = element("fieldset", {}, element("legend", {}, "Tree"), page.trees.length > 1 ? tree.node : null, beside2, component2.node);
    const form2 = element(
      "form",
      { class: "explorer-form", "aria-label": "Which tree", submit: (event) => event.preventDefault() },
      which,
      element("fieldset", {}, element("legend", {}, "Shown as"), population.node, mass.node)
    );
    const headline = element("p", { class: "explorer-answer", role: "status" });
    const contradictions = element("p", {});
    const bounds3 = element("p", {});
    const list = element("div", { class: "explorer-tree" });
    const after = element("div", { class: "explorer-lines" });
    const elsewhere = element("div", { class: "explorer-lines" });
    const answered = element("div", { class: "explorer-answers" }, headline, contradictions, bounds3, list, after);
    const complaint = element("div", { role: "status" });
    const ask = latest(answered, complaint);
    const opened = /* @__PURE__ */ new Set();
    const fieldsNow = () => treeFields({ ...asked, opened }, DEFAULT_POPULATION);
    const keep = () => remember(withPart(location.hash, TREES, fieldsNow()));
    begin2(asked);
    addEventListener("hashchange", () => {
      const wanted = fromAddress();
      if (JSON.stringify(treeFields(wanted, DEFAULT_POPULATION)) !== JSON.stringify(fieldsNow())) begin2(wanted);
    });
    function begin2({ opened: wanted, ...question }) {
      const { groups, components } = page.trees.find((one) => one.name === question.name);
      opened.clear();
      for (const node of wanted) opened.add(node);
      replace(beside2, groups.map((group3) => {
        const field = keyField(group3, (key) => change({ where: { ...asked.where, [group3.column]: key } }));
        field.show(question.where[group3.column]);
        return field.node;
      }));
      component2.fill(components.map((value) => ({ value, text: page.words.value(question.name, value) })));
      component2.node.hidden = components.length < 2;
      which.hidden = page.trees.length < 2 && groups.length === 0 && components.length < 2;
      change(question, false);
    }
    function choose(name) {
      begin2({ ...treeFromHash("", { trees: page.trees.filter((one) => one.name === name) }, [asked.population]), mass: asked.mass });
      keep();
    }
    function change(patch, isRemembered = true) {
      Object.assign(asked, patch);
      if (isRemembered) keep();
      tree.show(asked.name);
      component2.show(asked.component);
      population.show(asked.population);
      mass.show(Number((asked.mass * 100).toPrecision(12)));
      replace(elsewhere, sameElsewhere(...linesOf3(page, asked)));
      const { name, where, population: of2 } = asked;
      ask((pause) => reader.tree(name, { where, population: of2 }, pause), show);
    }
    function show(found) {
      const { component: name, mass: within2 } = asked;
      const nodes = nodesOf(page, found, name, within2);
      const [root2] = nodes[0];
      forgetUnknown(opened, nodes);
      const [least, most] = [element("strong", {}, root2.number(root2.lower)), element("strong", {}, root2.number(root2.upper))];
      replace(headline, `With ${percent(within2)} probability, ${page.words.statistic(asked.name)} `, ...saidOf(found, least, most));
      replace(contradictions, contradictionsOf(nodes, found.unit));
      replace(bounds3, found.unit.notes.join(" "));
      bounds3.hidden = !found.unit.isTotal;
      replace(list, legend(), element("p", { class: "hint" }, SCALES), branch([root2], nodes, { opened, keep }));
      replace(
        after,
        element("p", { class: "hint" }, `Leaves: ${found.population}.`),
        // not what the form has, while that is worked out
        found.notes.slice(found.unit.notes.length).map((note) => element("p", { class: "hint" }, note)),
        element("p", { class: "hint" }, found.unit.isTotal ? HOW_TOTALS : HOW_COUNTS)
      );
    }
    function saidOf({ unit, components }, least, most) {
      const { unit: named } = page.trees.find((one) => one.name === asked.name);
      if (unit.isTotal) return ["has a total of ", least, " to ", most, named ? ` ${named}.` : "."];
      return ["has ", least, " to ", most, components.length > 1 ? ` records of ${page.words.value(asked.name, asked.component)}.` : " records."];
    }
    return { title: "Explore the trees", lead: LEAD2, node: element("div", { class: "explorer-body" }, form2, element("div", { class: "explorer-right" }, complaint, answered, elsewhere)) };
  }
  var LEAD2 = "Counts and totals that were released level by level contradict each other. Open a node to see those below it: what was released, and what it can have been, given all of the tree.";
  var HOW_COUNTS = "All counts are inferred together, each tree of a category by itself: whole numbers, never negative, that add up in every draw. Ends of intervals are those of Python and of the command line.";
  var HOW_TOTALS = "All totals are inferred together: never negative, and they add up in every draw. What lies above the bound is missing from all of them alike. Ends of intervals are those of Python and of the command line.";
  function numberOf(value, step) {
    return step >= 1 || Math.abs(value) >= 100 ? whole(Math.round(value)) : brief(value, 4);
  }
  function nodesOf(page, tree, component2, mass) {
    const { levels, keys, parents } = tree;
    const nodes = keys.map(
      (of2, level) => of2.map((key, node) => ({
        level,
        name: levels[level],
        key,
        label: page.words.key(levels[level], key),
        number: (value) => numberOf(value, tree.unit.size),
        children: [],
        ...tree.summary(component2, level, node, mass),
        ...tree.released(component2, level, node)
      }))
    );
    parents.forEach((of2, level) => of2.forEach((parent, node) => nodes[level][parent].children.push(nodes[level + 1][node])));
    return nodes;
  }
  function idOf({ level, key }) {
    return `${level} ${key}`;
  }
  function forgetUnknown(opened, nodes) {
    const known = new Set(nodes.slice(0, -1).flat().map(idOf));
    for (const id of opened) if (!known.has(id)) opened.delete(id);
  }
  function nameOf2({ level, name, label: label2 }) {
    return level === 0 ? name : label2;
  }
  function contradictionsOf(nodes, { isTotal, steps: steps2 }) {
    const inner = nodes.slice(0, -1).flat();
    const all = nodes.flat();
    const apart2 = inner.filter(({ released, below }) => released !== below).length;
    const negative = all.filter(({ released }) => released < 0).length;
    const as = steps2 > 1 ? "As released, but for rounding," : "As released,";
    const said = [`${as} ${apart2} of ${inner.length} ${isTotal ? "totals" : "counts"} above the leaves ${apart2 === 1 ? "differs" : "differ"} from the sum of those right below.`];
    if (negative > 0) said.push(` ${negative} of ${all.length} ${negative === 1 ? "lies" : "lie"} below 0.`);
    said.push(" The intervals contradict nothing.");
    return said.join("");
  }
  function legend() {
    const sample2 = (of2) => svg("svg", { class: "sample", viewBox: "0 0 32 12", width: 32, height: 12, "aria-hidden": "true", focusable: "false" }, of2);
    return element(
      "ul",
      { class: "legend" },
      element("li", {}, sample2([svg("line", { class: "interval", x1: 2, x2: 30, y1: 6, y2: 6 }), svg("line", { class: "mean", x1: 16, x2: 16, y1: 1, y2: 11 })]), "interval and mean"),
      element("li", {}, sample2(svg("path", { class: "released", d: diamond(16, 6) })), "released"),
      element("li", {}, sample2(svg("circle", { class: "below", cx: 16, cy: 6, r: 4 })), "released right below, added up"),
      element("li", {}, sample2(svg("line", { class: "zero", x1: 16, x2: 16, y1: 0, y2: 12 })), "zero, where it is in view")
    );
  }
  var SCALES = "Above the leaves each row has a scale of its own, so that contradictions show; the leaves of a node share one. Compare nodes by their numbers.";
  function diamond(x, y) {
    return `M${x},${y - 5}L${x + 5},${y}L${x},${y + 5}L${x - 5},${y}Z`;
  }
  function branch(siblings, nodes, folds) {
    const list = element("ul", { class: "branch" });
    const shown2 = siblings.slice(0, MOST_SHOWN2);
    const ofLeaves = rangeOf(siblings, 0);
    const add2 = (some) => list.append(...some.map((node) => row3(node, node.below === null ? ofLeaves : rangeOf([node]), nodes, folds)));
    add2(shown2);
    if (siblings.length > shown2.length) {
      const more = element("button", { type: "button" }, `Show ${siblings.length - shown2.length} more`);
      const place = element("li", { class: "more" }, more);
      more.addEventListener("click", () => {
        place.remove();
        add2(siblings.slice(MOST_SHOWN2));
      });
      list.append(place);
    }
    return list;
  }
  function rangeOf(nodes, ...others2) {
    const values = nodes.flatMap(({ lower, upper, released, below }) => [lower, upper, released, below ?? released]).concat(others2);
    const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
    return [low, Math.max(high, low + 1)];
  }
  function row3(node, range, nodes, folds) {
    const { opened, keep } = folds;
    const id = idOf(node);
    const item = element("li", {});
    const isInner = node.children.length > 0;
    const inside2 = element("div", { class: "children" });
    const toggle = isInner ? element("button", { type: "button", class: "fold", "aria-expanded": "false", click: () => toggled(toggle.getAttribute("aria-expanded") !== "true") }, nameOf2(node)) : element("span", { class: "leaf" }, nameOf2(node));
    const differs2 = node.below !== null && node.below !== node.released;
    const { number: number2 } = node;
    const [lower, upper] = [number2(node.lower), number2(node.upper)];
    const said = [element("span", {}, `released ${number2(node.released)}${node.below === null ? "" : ","}`)];
    if (node.below !== null) said.push(" ", element("span", {}, `below it ${number2(node.below)}`));
    item.append(
      element(
        "div",
        { class: "node" },
        element("div", { class: "name" }, toggle),
        picture(node, range),
        element(
          "div",
          { class: "numbers" },
          element("strong", {}, lower === upper ? lower : `${lower} to ${upper}`),
          element("span", { class: differs2 || node.released < 0 ? "said contradicts" : "said" }, ...said)
        )
      ),
      inside2
    );
    const fold = (isOpen) => {
      toggle.setAttribute("aria-expanded", String(isOpen));
      if (isOpen && node.level > 0) opened.add(id);
      else opened.delete(id);
      replace(inside2, isOpen ? branch(node.children, nodes, folds) : null);
    };
    const toggled = (isOpen) => {
      fold(isOpen);
      keep();
    };
    if (isInner && (opened.has(id) || node.level === 0)) fold(true);
    return item;
  }
  function picture(node, [low, high]) {
    const { lower, upper, mean, released, below, number: number2 } = node;
    const x = (value) => 8 + (value - low) / (high - low) * (WIDTH - 16);
    const middle = HEIGHT / 2;
    return svg(
      "svg",
      { class: "explorer-node", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${nameOf2(node)}: ${number2(lower)} to ${number2(upper)}, released ${number2(released)}` },
      low <= 0 ? svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: HEIGHT }) : null,
      svg("line", { class: "interval", x1: x(lower) - 1, x2: x(upper) + 1, y1: middle, y2: middle }),
      svg("line", { class: "mean", x1: x(mean), x2: x(mean), y1: middle - 6, y2: middle + 6 }),
      below === null ? null : svg("circle", { class: "below", cx: x(below), cy: middle, r: 4 }),
      svg("path", { class: "released", d: diamond(x(released), middle) })
    );
  }
  function linesOf3(page, { name, where, population, mass }) {
    const places = Object.entries(where);
    const words = ["suffice", "tree", page.uri, name, ...places.flatMap(([column, key]) => ["--where", `${column}=${key}`])];
    if (population !== DEFAULT_POPULATION) words.push("--population", population);
    words.push("--mass", String(mass));
    const mapping = places.length === 0 ? "" : `, {${places.map(([column, key]) => `${pythonText(column)}: ${pythonText(key)}`).join(", ")}}`;
    const law = population === DEFAULT_POPULATION ? "" : `, population=${pythonText(population)}`;
    const python = [
      "import suffice",
      "",
      `release = suffice.open_release(${pythonText(page.uri)})`,
      `tree = release.tree(${pythonText(name)}${mapping}${law})`,
      `print(tree.table(${mass}))`,
      `print(tree.least_squares(${mass}))`
    ].join("\n");
    return [words, python];
  }

  // explorer/explorer.js
  var QUIET2 = 900;
  function start(section, text) {
    const written3 = readPage(text);
    const page = { ...written3, uri: placeOf(written3.uri, location.href) };
    const reader = reading(page);
    const parts = [
      page.statistics.length > 0 ? { part: "", title: "Explore", lead: LEAD3, node: parameterSection(page, reader) } : null,
      page.columns.length > 0 ? { part: COLUMNS, ...columnSection(page, reader) } : null,
      page.trees.length > 0 ? { part: TREES, ...treeSection(page, reader) } : null
    ].filter((part) => part !== null);
    const headings = parts.map(({ title }) => element("h2", {}, title));
    replace(section, parts.map(({ lead, node }, at) => [headings[at], element("p", { class: "lead" }, lead), node]));
    const asked = partOf(location.hash);
    return headings.find((_, at) => parts[at].part === asked) ?? section;
  }
  function parameterSection(page, reader) {
    const usual = /* @__PURE__ */ new Map();
    const entries = /* @__PURE__ */ new Map();
    let question = fromHash(location.hash, page, firstQuestion(page));
    let turn = 0;
    let quiet = null;
    const controls = form(page, ask);
    const answered = answers(page, ask);
    const unanswered = element("div", { class: "explorer-unanswered", hidden: true });
    const voice = element("p", { class: "visually-hidden", role: "status" });
    const right = element("div", { class: "explorer-right" }, answered.node, unanswered, voice);
    addEventListener("hashchange", () => {
      const asked = fromHash(location.hash, page, firstQuestion(page));
      if (toHash(asked) !== toHash(question)) ask(asked, false);
    });
    ask({}, false);
    return element("div", { class: "explorer-body" }, controls.node, right);
    function ask(patch, isRemembered = true) {
      question = { ...question, ...patch };
      if (isRemembered) remember(withQuestion(location.hash, question));
      turn += 1;
      const mine = turn;
      showForm(true);
      answered.working();
      clearTimeout(quiet);
      setTimeout(() => mine === turn && work(mine));
    }
    async function work(mine) {
      const asked = question;
      const statistic = declared(asked);
      try {
        if (!usual.has(statistic.name)) await learn(statistic, asked.cell);
        await answer(
          reader,
          statistic,
          asked,
          () => mine !== turn,
          (found) => {
            if (mine !== turn) return;
            controls.complain(null);
            unanswered.hidden = true;
            answered.hide(false);
            answered.show(found);
            showForm(true);
          }
        );
        if (mine === turn) quiet = setTimeout(() => voice.textContent = answered.spoken(), QUIET2);
        await judge(statistic, asked, mine);
        await prepare(reader, statistic, asked, usual.get(statistic.name), () => mine !== turn).catch(() => {
        });
      } catch (error) {
        if (error instanceof Overtaken || mine !== turn) return;
        await refused4(error, statistic, asked);
      }
    }
    async function judge(statistic, asked, mine) {
      if (mine !== turn || asked.prior === "" || asked.prior === usual.get(statistic.name)) return;
      const pause = async () => {
        await nextTask();
        if (mine !== turn) throw new Overtaken();
      };
      answered.together(null);
      answered.together(await reader.together(statistic.name, asked, pause) ?? { lines: [] });
    }
    async function learn(statistic, cell) {
      const posterior = await reader.posterior(statistic.name, cell, { prior: "", nPrior: "", method: "plug-in", parameters: [] });
      usual.set(statistic.name, String(posterior.prior));
      entries.set(statistic.name, reader.entries(posterior, statistic));
    }
    async function refused4(error, statistic, asked) {
      const message = error instanceof Error && error.code ? error.message : "this browser cannot work it out";
      if (error.code === "prior" && usual.has(statistic.name)) {
        controls.complain(message);
        voice.textContent = message;
        return;
      }
      showForm(usual.has(statistic.name));
      answered.hide(true);
      unanswered.hidden = false;
      let released = null;
      try {
        released = releasedTable(await reader.table(statistic.name, asked.cell));
      } catch {
      }
      replace(
        unanswered,
        element("p", { class: "explorer-answer" }, `The explorer has no posterior of ${page.words.statistic(statistic.name)}.`),
        element("p", { class: "hint" }, `${message}.`),
        element("p", {}, "Python and the command line work it out:"),
        element("pre", { tabindex: 0 }, commandCode(page, asked)),
        released
      );
      voice.textContent = `No posterior of ${page.words.statistic(statistic.name)} here. The page says what to run instead.`;
    }
    function showForm(isAnswered) {
      const statistic = declared(question);
      const known = entries.get(statistic.name) ?? [];
      const shown2 = known.some(({ key }) => key === question.shown) ? question.shown : known[0]?.key ?? "";
      controls.show(
        { ...question, shown: shown2 },
        {
          entries: known,
          usual: usual.get(statistic.name) ?? "",
          statistic,
          isAnswered: isAnswered && usual.has(statistic.name)
        }
      );
    }
    function declared({ statistic }) {
      return page.statistics.find(({ name }) => name === statistic);
    }
  }
  var LEAD3 = "Choose a cell, state what you believed before, and see what this release makes of it. Everything is worked out in your browser; nothing is sent anywhere, and it costs no privacy.";

  // explorer/main.js
  var NEAR = "400px";
  var LATER = 500;
  function begin() {
    const data = document.getElementById("suffice-release");
    const section = document.getElementById("explorer");
    if (data === null || section === null) return;
    const isAsked = location.hash.startsWith(MARK);
    let isStarted = false;
    const once = () => {
      if (isStarted) return;
      isStarted = true;
      const begins = start(section, data.textContent);
      if (isAsked) begins.scrollIntoView();
    };
    if (isAsked || typeof IntersectionObserver !== "function") {
      once();
      return;
    }
    const watch = new IntersectionObserver(
      (seen) => {
        if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
        watch.disconnect();
        once();
      },
      { rootMargin: NEAR }
    );
    watch.observe(section);
    addEventListener("load", () => setTimeout(once, LATER));
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
