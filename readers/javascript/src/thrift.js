/** Thrift's compact form, in which Parquet keeps its headers; no length in it is believed. */

const DEEPEST = 12;
const [TRUE, FALSE, BYTE, I16, I32, I64, BINARY, LIST, STRUCT] = [1, 2, 3, 4, 5, 6, 8, 9, 12];

/** A position in bytes from which values are read; malformed ones throw a RangeError. */
export class ThriftReader {
  constructor(data, position, end) {
    this.data = data;
    this.position = position;
    this.end = end;
    this.depth = 0;
  }

  /** A structure: a Map of its fields by number. */
  struct() {
    this.enter();
    const fields = new Map();
    let number = 0;
    for (let head = this.byte(); head !== 0; head = this.byte()) {
      number = head >> 4 ? number + (head >> 4) : this.integer();
      if (fields.has(number)) throw malformed();
      fields.set(number, this.value(head & 15));
    }
    this.depth -= 1;
    return fields;
  }

  enter() {
    this.depth += 1;
    if (this.depth > DEEPEST) throw malformed();
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
    if (size > this.end - this.position) throw malformed(); // every entry takes a byte at least
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
    let number = 0;
    for (let scale = 1; scale < 2 ** 64; scale *= 128) {
      const byte = this.byte();
      number += (byte & 127) * scale;
      if (byte < 128) {
        if (!Number.isSafeInteger(number)) throw malformed();
        return number;
      }
    }
    throw malformed();
  }

  /** A signed number: its sign is the last bit. */
  integer() {
    const number = this.unsigned();
    return number % 2 ? -(number + 1) / 2 : number / 2;
  }
}

function malformed() {
  return new RangeError("not in Thrift's compact form");
}
