/** Tables of publications: plain Parquet of texts, whole numbers, doubles and truth values, any of which may be missing. */

import { encodeText, equalBytes } from "./bytes.js";
import { ThriftReader } from "./thrift.js";

const [BOOLEAN, INT64, DOUBLE, TEXT] = [0, 2, 5, 6];
const [PLAIN, LEVELS] = [0, 3];
const [REQUIRED, OPTIONAL] = [0, 1];
const UTF8 = 0;
const LEAST_ROW = 4;
const MAGIC = encodeText("PAR1");

/** What a table breaks; its message says which rule. */
class TableError extends Error {}

/**
 * Read a table.
 *
 * @param {Uint8Array} data The file.
 * @param {(rule: string) => never} refuse Called with what is wrong with it.
 * @returns {{rows: number, columns: Map<string, ArrayLike<any>>}} Doubles and whole numbers as `Float64Array`; as a
 *   list with nulls where any is missing; as a list of `bigint` where a whole number lies beyond 2^53.
 */
export function readTable(data, refuse) {
  try {
    return table(data);
  } catch (error) {
    return refuse(error instanceof TableError ? error.message : "it is no readable Parquet file, or not one of the format");
  }
}

function table(data) {
  const end = data.length - 8;
  const framed = end >= 4 && equalBytes(data.subarray(0, 4), MAGIC) && equalBytes(data.subarray(-4), MAGIC);
  demand(framed, "it is no readable Parquet file");
  const footer = end - viewOf(data).getUint32(end, true);
  demand(footer >= 4, "its footer is longer than the file");
  const metadata = new ThriftReader(data, footer, end).struct();
  const [root, ...fields] = metadata.get(2);
  demand(fields.length > 0 && root.get(5) === fields.length, "its columns are nested");
  const kinds = fields.map(kindOf);
  demand(new Set(kinds.map(({ name }) => name)).size === kinds.length, "two of its columns have one name");
  const rows = metadata.get(3);
  // In every row some value is there, so that what is made of a file is bounded by its size.
  demand(rows >= 0 && rows * LEAST_ROW <= data.length, "it states more rows than it has room for");
  const groups = metadata.get(4);
  demand(groups.reduce((sum, group) => sum + group.get(3), 0) === rows, "its rows are not those of its groups");
  const columns = new Map();
  kinds.forEach((kind, i) => {
    const values = { found: new Array(rows), next: 0 };
    for (const group of groups) readChunk(data, footer, group.get(1)[i].get(3), group.get(3), kind, values);
    columns.set(kind.name, compact(values.found, kind));
  });
  return { rows, columns };
}

function kindOf(field) {
  const name = textOf(field.get(4));
  const [type, repetition] = [field.get(1), field.get(3)];
  const known = [BOOLEAN, INT64, DOUBLE].includes(type) ? !field.has(6) : type === TEXT && field.get(6) === UTF8;
  const flat = !field.has(5) && (repetition === REQUIRED || repetition === OPTIONAL);
  demand(known && flat, "a column of it holds something else than texts, whole numbers, doubles and truth values");
  return { name, type, optional: repetition === OPTIONAL };
}

function readChunk(data, footer, column, rows, kind, values) {
  const path = column.get(3);
  const fits = column.get(1) === kind.type && path.length === 1 && textOf(path[0]) === kind.name && column.get(5) === rows;
  demand(fits, "its columns are not those that it declares");
  const plain = column.get(4) === 0 && !column.has(11);
  demand(plain, "a column of it is compressed, or has a dictionary");
  if (rows === 0) return;
  let position = column.get(9);
  const end = position + column.get(7);
  demand(position >= 4 && end >= position && end <= footer, "a column of it is out of place");
  let left = rows;
  while (left > 0) {
    const reader = new ThriftReader(data, position, end);
    const page = reader.struct();
    const [size, header] = [page.get(3), page.get(5)];
    const first = reader.position;
    const one = page.get(1) === 0 && page.get(2) === size && header.get(2) === PLAIN;
    demand(one && (!kind.optional || header.get(3) === LEVELS), "a page of it is compressed, encoded, or of another version");
    const count = header.get(1);
    demand(count >= 1 && count <= left && size >= 0 && size <= end - first, "a page of it is out of place");
    readPage(data.subarray(first, first + size), count, kind, values);
    position = first + size;
    left -= count;
  }
  demand(position === end, "it holds bytes of no page");
}

function readPage(page, count, kind, values) {
  let at = 0;
  let isThere = null;
  if (kind.optional) {
    const size = viewOf(page).getUint32(0, true);
    demand(size <= page.length - 4, "a page of it is cut off");
    isThere = levels(page.subarray(4, 4 + size), count);
    at = 4 + size;
  }
  const reader = PLAIN_READERS[kind.type](page, at);
  for (let i = 0; i < count; i += 1) {
    values.found[values.next] = isThere === null || isThere[i] === 1 ? reader.next() : null;
    values.next += 1;
  }
  demand(reader.end() === page.length, "a page of it holds more than its values");
}

/** Which values are there: runs of one bit, or packed eight to a byte. */
function levels(bytes, count) {
  const found = new Uint8Array(count);
  let [at, done] = [0, 0];
  while (done < count) {
    const reader = new ThriftReader(bytes, at, bytes.length);
    const header = reader.unsigned();
    at = reader.position;
    const isPacked = header % 2 === 1;
    const run = Math.floor(header / 2) * (isPacked ? 8 : 1);
    const size = isPacked ? run / 8 : 1;
    demand(run > 0 && size <= bytes.length - at, "a page of it does not say which values are there");
    const own = Math.min(run, count - done);
    demand(isPacked || (own === run && bytes[at] <= 1), "a page of it does not say which values are there");
    for (let i = 0; i < own; i += 1) found[done + i] = isPacked ? (bytes[at + (i >> 3)] >> (i & 7)) & 1 : bytes[at];
    done += own;
    at += size;
  }
  demand(at === bytes.length, "a page of it does not say which values are there");
  return found;
}

/** Values one after the other, from a position on; beyond the last byte a view throws. */
const PLAIN_READERS = {
  [BOOLEAN]: (page, start) => {
    let bit = 0;
    return {
      next: () => {
        const byte = viewOf(page).getUint8(start + (bit >> 3));
        bit += 1;
        return ((byte >> ((bit - 1) & 7)) & 1) === 1;
      },
      end: () => start + Math.ceil(bit / 8),
    };
  },
  [INT64]: (page, start) => fixed(page, start, (view, at) => view.getBigInt64(at, true)),
  [DOUBLE]: (page, start) => fixed(page, start, (view, at) => view.getFloat64(at, true)),
  [TEXT]: (page, start) => {
    const view = viewOf(page);
    let at = start;
    let [bytes, text] = [null, ""];
    return {
      next: () => {
        const size = view.getUint32(at, true);
        demand(size <= page.length - at - 4, "a text of it is cut off");
        const own = page.subarray(at + 4, at + 4 + size);
        at += 4 + size;
        // Texts stand many times in a row: names of parameters, keys.
        if (bytes === null || !equalBytes(own, bytes)) [bytes, text] = [own, textOf(own)];
        return text;
      },
      end: () => at,
    };
  },
};

function fixed(page, start, read) {
  const view = viewOf(page);
  let at = start;
  return {
    next: () => {
      at += 8;
      return read(view, at - 8);
    },
    end: () => at,
  };
}

/** Numbers as a typed array where none is missing. */
function compact(values, { type }) {
  if (type !== INT64 && type !== DOUBLE) return values;
  let numbers = values;
  if (type === INT64) {
    const isSafe = (value) => value === null || (value >= -9007199254740991n && value <= 9007199254740991n);
    if (!values.every(isSafe)) return values;
    numbers = values.map((value) => (value === null ? null : Number(value)));
  }
  return numbers.includes(null) ? numbers : Float64Array.from(numbers);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes) {
  return decoder.decode(bytes);
}

function viewOf(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function demand(fits, rule) {
  if (!fits) throw new TableError(rule);
}
