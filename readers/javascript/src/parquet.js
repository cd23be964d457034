/** A release's data file: uncompressed, without dictionaries; every byte of it is accounted for. */

import { decodeText, encodeText, equalBytes } from "./bytes.js";
import { ReleaseError, shown } from "./errors.js";
import { toNumber, rational } from "./exact.js";
import { isSampled, numberOfPoints } from "./samples.js";
import { ThriftReader } from "./thrift.js";

const ROW_GROUP = 2 ** 20;
const PAGE_HEADER = 64;
const SMALLEST_PAGE = 2 ** 13;
const [INT64, DOUBLE, TEXT, FIXED] = [2, 5, 6, 7];
const [PLAIN, LEVELS] = [0, 3];
const MAGIC = encodeText("PAR1");

/** Limits of the two types of released values. */
const LIMITS = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  "decimal128(38, 0)": [1n - 10n ** 38n, 10n ** 38n - 1n],
};

/**
 * Read the values of a statistic, and check keys, components and estimates.
 *
 * @param {Uint8Array} data The file.
 * @param {object} statistic Its entry in the manifest.
 * @param {{column: string, kind: string, keys: (string | number)[]}[]} groups
 * @returns {bigint[] | BigInt64Array} In lattice units; cell after cell, component after component.
 */
export function readValues(data, statistic, groups) {
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
  const nCells = groups.reduce((product, group) => product * group.keys.length, 1);
  const nRows = nCells * valuesOfCell(statistic);
  if (isSampled(statistic)) return readPoints(data, statistic, groups, found, nRows, refuse);
  const values = statistic.value_type === "int64" ? new BigInt64Array(nRows) : new Array(nRows);
  const total = statistic.partition_total === null ? null : BigInt(statistic.partition_total);
  const [lowest, highest] = LIMITS[statistic.value_type];
  let done = 0;
  for (const { rows, spans } of found) {
    const own = joined(data, spans.get("value"));
    const size = statistic.value_type === "int64" ? 8 : 16;
    const view = new DataView(own.buffer, own.byteOffset, own.length);
    const estimates = joined(data, spans.get("estimate"));
    const doubles = new DataView(estimates.buffer, estimates.byteOffset, estimates.length);
    if (own.length !== size * rows || estimates.length !== 8 * rows) refuse("it does not hold each value once");
    for (let row = 0; row < rows; row += 1) {
      const value = size === 8 ? view.getBigInt64(8 * row, true) : decimal(view, 16 * row);
      if (value < lowest || value > highest) refuse("a value lies beyond the ends of its type");
      values[done + row] = value;
      if (!Object.is(doubles.getFloat64(8 * row, true), estimate(value, total))) {
        refuse("its estimates do not follow from its values");
      }
    }
    checkLabels(data, statistic, groups, spans, done, rows, refuse);
    done += rows;
  }
  return values;
}

/** Read the points of a sample's grid, and check keys and draws. */
function readPoints(data, statistic, groups, found, nRows, refuse) {
  const values = new BigInt64Array(nRows);
  const most = BigInt(numberOfPoints(statistic));
  let done = 0;
  for (const { rows, spans } of found) {
    const own = joined(data, spans.get("value"));
    if (own.length !== 8 * rows) refuse("it does not hold each value once");
    const view = new DataView(own.buffer, own.byteOffset, own.length);
    for (let row = 0; row < rows; row += 1) {
      const point = view.getBigInt64(8 * row, true);
      if (point < 0n || point >= most) refuse("a value is no point of its grid");
      values[done + row] = point;
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

/** How many values of a cell a file has: its components, or the draws of a sample. */
export function valuesOfCell(statistic) {
  return isSampled(statistic) ? statistic.draws : statistic.components.length;
}

function decimal(view, at) {
  return (view.getBigInt64(at, false) << 64n) | view.getBigUint64(at + 8, false);
}

/** A value over the partition's total, rounded once. */
function estimate(value, total) {
  if (total === null) return Number(value);
  const size = value < 0n ? -value : value;
  if (size <= 9007199254740992n && total <= 9007199254740992n) return Number(value) / Number(total);
  return toNumber(rational(value, total));
}

/** Name, keys as bytes, and the position of a row's key, of the group columns and the components. */
function* labels(statistic, groups) {
  const width = valuesOfCell(statistic);
  let inner = groups.reduce((product, group) => product * group.keys.length, 1);
  for (const group of groups) {
    inner /= group.keys.length;
    const step = inner * width;
    const keys = group.kind === "range" ? group.keys.map(int64) : group.keys.map((key) => lengthAnd(String(key)));
    yield [group.column, keys, (row) => Math.floor(row / step) % group.keys.length];
  }
  if (isSampled(statistic)) {
    yield ["draw", Array.from({ length: width }, (_, draw) => int64(draw)), (row) => row % width];
    return;
  }
  yield ["component", statistic.components.map(lengthAnd), (row) => row % width];
}

function int64(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(number), true);
  return bytes;
}

function lengthAnd(text) {
  const written = encodeText(text);
  const bytes = new Uint8Array(4 + written.length);
  new DataView(bytes.buffer).setUint32(0, written.length, true);
  bytes.set(written, 4);
  return bytes;
}

function hasLabels(bytes, keys, position, start, rows) {
  let at = 0;
  for (let row = start; row < start + rows; row += 1) {
    const key = keys[position(row)];
    if (at + key.length > bytes.length) return false;
    for (let i = 0; i < key.length; i += 1) if (bytes[at + i] !== key[i]) return false;
    at += key.length;
  }
  return at === bytes.length;
}

function joined(data, spans) {
  if (spans.length === 1) return data.subarray(...spans[0]);
  const bytes = new Uint8Array(spans.reduce((sum, [start, end]) => sum + end - start, 0));
  let at = 0;
  for (const [start, end] of spans) {
    bytes.set(data.subarray(start, end), at);
    at += end - start;
  }
  return bytes;
}

/** Bytes that the values of every column take, over all rows. */
export function columnSizes(statistic, groups) {
  const nCells = groups.reduce((product, group) => product * group.keys.length, 1);
  const width = valuesOfCell(statistic);
  const texts = (keys) => keys.reduce((sum, key) => sum + 4 + encodeText(String(key)).length, 0);
  const sizes = new Map();
  for (const group of groups) {
    const cells = group.kind === "range" ? 8 * nCells : (nCells / group.keys.length) * texts(group.keys);
    sizes.set(group.column, width * cells);
  }
  if (isSampled(statistic)) return sizes.set("draw", 8 * nCells * width).set("value", 8 * nCells * width);
  sizes.set("component", nCells * texts(statistic.components));
  sizes.set("value", (statistic.value_type === "int64" ? 8 : 16) * nCells * width);
  sizes.set("estimate", 8 * nCells * width);
  return sizes;
}

/** The least and the greatest size of a file: of values alone, and with headers and a footer. */
export function fileSizes(statistic, groups) {
  const sizes = columnSizes(statistic, groups);
  const values = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const rowGroups = rowGroupCount(statistic, groups);
  const headers = PAGE_HEADER * (rowGroups * sizes.size + Math.floor(values / SMALLEST_PAGE));
  return [12 + values, 12 + values + headers + largestFooter(sizes, rowGroups)];
}

function rowGroupCount(statistic, groups) {
  const nCells = groups.reduce((product, group) => product * group.keys.length, 1);
  return Math.ceil((nCells * valuesOfCell(statistic)) / ROW_GROUP);
}

function largestFooter(sizes, rowGroups) {
  const names = [...sizes.keys()].reduce((sum, name) => sum + encodeText(name).length, 0);
  return 1024 + 64 * sizes.size + names + rowGroups * (64 + 128 * sizes.size + names);
}

/** Where the values of every column stand, row group by row group; throws where a byte is not explained. */
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
  const [root, ...fields] = metadata.get(2);
  const declares = fields.length === kinds.size && root.get(5) === kinds.size;
  if (!declares || ![...kinds].every(([name, kind], i) => isDeclared(fields[i], name, kind))) {
    refuse("its columns are not the plan's");
  }
  const nRows = valuesOfCell(statistic) * groups.reduce((product, group) => product * group.keys.length, 1);
  const declared = metadata.get(4);
  if (metadata.get(3) !== nRows || declared.length !== rowGroupCount(statistic, groups)) {
    refuse("its rows or row groups are not the plan's");
  }
  let position = 4;
  const found = declared.map((group, index) => {
    const rows = Math.min(ROW_GROUP, nRows - index * ROW_GROUP);
    if (group.get(3) !== rows) refuse("its rows or row groups are not the plan's");
    if (!only(group, [1, 2, 3], [5, 6, 7])) refuse("its row groups say more than the plan's");
    const chunks = group.get(1);
    if (chunks.length !== kinds.size) refuse("its columns are not the plan's");
    const spans = new Map();
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
  const kinds = new Map(groups.map((group) => [group.column, group.kind === "range" ? [INT64] : [TEXT]]));
  if (isSampled(statistic)) return kinds.set("draw", [INT64]).set("value", [INT64]);
  kinds.set("component", [TEXT]);
  kinds.set("value", statistic.value_type === "int64" ? [INT64] : [FIXED, 16, 0, 38]);
  kinds.set("estimate", [DOUBLE]);
  return kinds;
}

function isDeclared(entry, name, kind) {
  const lengths = [2, 7, 8].filter((number) => entry.has(number)).map((number) => entry.get(number));
  return (
    entry.get(3) === 0 &&
    !entry.has(5) &&
    decodeText(entry.get(4)) === name &&
    entry.get(1) === kind[0] &&
    lengths.length === kind.length - 1 &&
    lengths.every((value, i) => value === kind[i + 1])
  );
}

function chunkSize(chunk, name, kind, rows, position) {
  const column = chunk.get(3);
  if (!only(chunk, [3], [2]) || !only(column, [1, 2, 3, 4, 5, 6, 7, 9], [13, 16])) return null;
  const path = column.get(3);
  const asExpected =
    column.get(1) === kind &&
    path.length === 1 &&
    decodeText(path[0]) === name &&
    column.get(4) === 0 &&
    column.get(5) === rows &&
    column.get(9) === position &&
    column.get(6) === column.get(7) &&
    column.get(2).every((encoding) => encoding === PLAIN || encoding === LEVELS);
  return asExpected && Number.isInteger(column.get(7)) ? column.get(7) : null;
}

/** The spans of the values of a column's pages: as they are, of the first version, without a checksum. */
function pages(data, start, end, rows, refuse) {
  const spans = [];
  let [position, left] = [start, rows];
  while (position < end && left > 0) {
    const reader = new ThriftReader(data, position, Math.min(end, position + PAGE_HEADER));
    const page = reader.struct();
    const size = page.get(3);
    const values = page.get(5);
    const statistics = values.get(5);
    const plain =
      only(page, [1, 2, 3, 5], []) && page.get(1) === 0 && page.get(2) === size && values.get(2) === PLAIN;
    if (!plain || !only(values, [1, 2, 3, 4], [5]) || (statistics !== undefined && statistics.size > 0)) {
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
  if (!required.every((number) => fields.has(number))) return false;
  return [...fields.keys()].every((number) => required.includes(number) || optional.includes(number));
}
