/* Units: keyed hashes, and records that travel between tasks. What siphash.py, records.py and unit_ids.py say.

   Arithmetic of hashes is modulo 2^64, in unsigned numbers throughout. */

#include <stdlib.h>

#include "call.h"

typedef struct {
    uint64_t v0, v1, v2, v3;
} State;

static inline uint64_t rotated(uint64_t word, int by) { return word << by | word >> (64 - by); }

static inline State one_round(State v)
{
    v.v0 += v.v1;
    v.v1 = rotated(v.v1, 13) ^ v.v0;
    v.v0 = rotated(v.v0, 32);
    v.v2 += v.v3;
    v.v3 = rotated(v.v3, 16) ^ v.v2;
    v.v0 += v.v3;
    v.v3 = rotated(v.v3, 21) ^ v.v0;
    v.v2 += v.v1;
    v.v1 = rotated(v.v1, 17) ^ v.v2;
    v.v2 = rotated(v.v2, 32);
    return v;
}

static inline State begin(uint64_t key0, uint64_t key1)
{
    return (State){UINT64_C(0x736F6D6570736575) ^ key0, UINT64_C(0x646F72616E646F6D) ^ key1,
                   UINT64_C(0x6C7967656E657261) ^ key0, UINT64_C(0x7465646279746573) ^ key1};
}

static inline State absorb(State v, uint64_t word)
{
    v.v3 ^= word;
    v = one_round(one_round(v));
    v.v0 ^= word;
    return v;
}

static inline State finish(State v) { return one_round(one_round(one_round(one_round(v)))); }

static inline uint64_t folded(State v) { return v.v0 ^ v.v1 ^ v.v2 ^ v.v3; }

static bool hash_words(const Argument *a)
{
    const uint64_t *words = a[0].data;
    uint64_t *out = a[3].data, last = (uint64_t)(8 * a[0].columns & 0xFF) << 56;
    if (a[3].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        State v = begin(a[1].natural, a[2].natural);
        for (int64_t word = 0; word < a[0].columns; word++)
            v = absorb(v, words[row * a[0].columns + word]);
        v = absorb(v, last);
        v.v2 ^= 0xFF;
        out[row] = folded(finish(v));
    }
    return true;
}

/* Bytes as a number in little-endian order, on every machine. */
static inline uint64_t as_word(const uint8_t *bytes, int64_t length)
{
    uint64_t word = 0;
    for (int64_t byte = 0; byte < length; byte++)
        word |= (uint64_t)bytes[byte] << (8 * byte);
    return word;
}

static bool hash_texts(const Argument *a)
{
    const int64_t *offsets = a[0].data;
    const uint8_t *data = a[1].data;
    uint64_t *out = a[4].data;
    if (a[4].rows < a[0].rows - 1 || a[4].columns != 2)
        return false;
    for (int64_t row = 0; row < a[0].rows - 1; row++) {
        int64_t start = offsets[row], end = offsets[row + 1];
        if (start < 0 || start > end || end > a[1].rows)
            return false;
        int64_t length = end - start, whole = length - length % 8;
        State v = begin(a[2].natural, a[3].natural);
        v.v1 ^= 0xEE;
        for (int64_t position = start; position < start + whole; position += 8)
            v = absorb(v, as_word(data + position, 8));
        v = absorb(v, (uint64_t)(length & 0xFF) << 56 | as_word(data + start + whole, length - whole));
        v.v2 ^= 0xEE;
        v = finish(v);
        out[2 * row] = folded(v);
        v.v1 ^= 0xDD;
        out[2 * row + 1] = folded(finish(v));
    }
    return true;
}

/* Units spread over 64 bits. It decides where rows are handled, never which are kept. */
static inline uint64_t position_of(uint64_t first, uint64_t second, uint64_t key0, uint64_t key1)
{
    uint64_t z = ((first ^ key0) * UINT64_C(0xBF58476D1CE4E5B9)) ^ (second + key1);
    z = (z ^ z >> 29) * UINT64_C(0x94D049BB133111EB);
    z = (z ^ z >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
    return z ^ z >> 29;
}

ON_VECTORS static bool assign_parts(const Argument *a)
{
    const uint64_t *words = a[0].data;
    uint64_t total = (uint64_t)a[5].integer;
    int32_t *out = a[7].data;
    if (a[7].rows < a[0].rows || a[0].columns < 2)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        const uint64_t *unit = words + row * a[0].columns;
        uint64_t spread = position_of(unit[0], unit[1], a[1].natural, a[2].natural);
        uint64_t half = a[6].integer ? spread & UINT32_MAX : spread >> 32;
        int64_t part = (int64_t)(half * total >> 32) - a[3].integer;
        bool is_here = (out[row] >= 0) & (part >= 0) & (part < a[4].integer);
        out[row] = is_here ? (int32_t)part : -1;
    }
    return true;
}

static bool sort_by_part(const Argument *a)
{
    const int32_t *parts = a[0].data;
    int64_t *ends = a[1].data, n_parts = a[1].rows - 1;
    int32_t *order = a[2].data;
    if (n_parts < 0 || a[2].rows < a[0].rows || a[0].rows > INT32_MAX)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++)
        if (parts[row] >= 0) {
            if (parts[row] >= n_parts)
                return false;
            ends[parts[row] + 1]++;
        }
    for (int64_t part = 1; part <= n_parts; part++)
        ends[part] += ends[part - 1];
    for (int64_t row = 0; row < a[0].rows; row++)
        if (parts[row] >= 0) {
            int64_t place = ends[parts[row]]++;
            if (!within(place, a[2].rows))
                return false;
            order[place] = (int32_t)row;
        }
    for (int64_t part = n_parts; part > 0; part--)
        ends[part] = ends[part - 1];
    ends[0] = 0;
    return true;
}

/* Whether a table has a power of two of slots, room for every row and one more, and nothing in it: only then does
   each search in it end. */
static bool is_open(const Argument *table, int64_t n_rows)
{
    const int32_t *slots = table->data;
    int32_t all = -1;
    for (int64_t slot = 0; slot < table->rows; slot++)
        all &= slots[slot];
    return all < 0 && table->rows > n_rows && !(table->rows & (table->rows - 1)) && n_rows <= INT32_MAX;
}

static bool number_units(const Argument *a)
{
    const uint64_t *words = a[0].data;
    int32_t *slots = a[3].data, *numbers = a[4].data, *counts = a[5].data, n_units = 0;
    int64_t n_rows = a[0].rows, width = a[0].columns;
    if (width < 2 || !is_open(&a[3], n_rows) || a[4].rows < n_rows || a[5].rows < n_rows)
        return false;
    uint64_t mask = (uint64_t)a[3].rows - 1;
    int32_t *firsts = malloc((n_rows ? n_rows : 1) * sizeof *firsts); /* each unit's first row */
    bool has_memory = firsts != NULL;
    for (int64_t row = 0; row < n_rows && has_memory; row++) {
        uint64_t first = words[row * width], second = words[row * width + 1];
        uint64_t slot = position_of(first, second, a[1].natural, a[2].natural) & mask;
        int32_t unit;
        for (;; slot = (slot + 1) & mask) {
            unit = slots[slot];
            if (unit < 0) {
                slots[slot] = unit = n_units;
                firsts[n_units++] = (int32_t)row;
                break;
            }
            if (words[firsts[unit] * width] == first && words[firsts[unit] * width + 1] == second)
                break;
        }
        numbers[row] = unit;
        counts[unit]++;
    }
    free(firsts);
    return has_memory;
}

/* The first word that differs between two rows; `width` where none does. */
static inline int64_t first_difference(const uint64_t *words, int64_t width, int64_t row, int64_t other)
{
    int64_t word = 0;
    while (word < width && words[row * width + word] == words[other * width + word])
        word++;
    return word;
}

static bool settle_ties(const Argument *a)
{
    const uint64_t *words = a[0].data, *hashes = a[1].data;
    int64_t *order = a[2].data, width = a[0].columns, n_rows = a[0].rows;
    if (a[1].rows < n_rows || width < 1)
        return false;
    for (int64_t position = 0; position < a[2].rows; position++)
        if (!within(order[position], n_rows))
            return false;
    for (int64_t position = 1; position < a[2].rows; position++) {
        int64_t row = order[position], at = position;
        for (; at > 0; at--) {
            int64_t before = order[at - 1];
            if (hashes[before] != hashes[row])
                break;
            int64_t word = first_difference(words, width, before, row);
            if (word == width || words[before * width + word] <= words[row * width + word])
                break;
            order[at] = before;
        }
        order[at] = row;
    }
    return true;
}

static bool rank_rows(const Argument *a)
{
    const uint64_t *words = a[0].data, *hashes = a[1].data;
    int32_t *slots = a[4].data;
    uint64_t *ranks = a[5].data;
    int64_t n_rows = a[0].rows, width = a[0].columns;
    if (!is_open(&a[4], n_rows) || a[1].rows < n_rows || a[5].rows < n_rows)
        return false;
    uint64_t mask = (uint64_t)a[4].rows - 1;
    uint64_t *copies = calloc(n_rows ? n_rows : 1, sizeof *copies); /* of a row, by the first of its kind */
    bool has_memory = copies != NULL;
    for (int64_t row = 0; row < n_rows && has_memory; row++) {
        uint64_t slot = hashes[row] & mask;
        int32_t first;
        for (;; slot = (slot + 1) & mask) {
            first = slots[slot];
            if (first < 0) {
                slots[slot] = first = (int32_t)row;
                break;
            }
            if (first_difference(words, width, first, row) == width)
                break;
        }
        State v = absorb(begin(a[2].natural, a[3].natural), hashes[row]);
        v = absorb(v, copies[first]++);
        v = absorb(v, UINT64_C(16) << 56);
        v.v2 ^= 0xFF;
        ranks[row] = folded(finish(v));
    }
    free(copies);
    return has_memory;
}

static bool take_first(const Argument *a)
{
    const int64_t *order = a[0].data;
    const int32_t *numbers = a[1].data;
    int32_t *taken = a[3].data;
    uint8_t *kept = a[4].data;
    if (a[4].rows < a[1].rows)
        return false;
    for (int64_t position = 0; position < a[0].rows; position++) {
        int64_t row = order[position];
        if (!within(row, a[1].rows) || !within(numbers[row], a[3].rows))
            return false;
        kept[row] = taken[numbers[row]]++ < a[2].integer;
    }
    return true;
}

static bool pack_units(const Argument *a)
{
    const uint64_t *units = a[0].data;
    const int32_t *chosen = a[1].data;
    uint64_t *records = a[2].data;
    if (a[0].columns < 2 || a[2].columns < 2 || a[2].rows < a[1].rows)
        return false;
    for (int64_t row = 0; row < a[1].rows; row++) {
        if (!within(chosen[row], a[0].rows))
            return false;
        const uint64_t *unit = units + chosen[row] * a[0].columns;
        records[row * a[2].columns] = unit[0];
        records[row * a[2].columns + 1] = unit[1];
    }
    return true;
}

static bool pack(const Argument *a)
{
    const int32_t *values = a[0].data, *chosen = a[1].data;
    int64_t word = a[2].integer, shift = a[3].integer, lowest = a[4].integer;
    uint64_t *records = a[5].data;
    if (!within(word, a[5].columns) || !within(shift, 64) || a[5].rows < a[1].rows ||
        lowest < -(INT64_C(1) << 62) || lowest > INT64_C(1) << 62)
        return false;
    for (int64_t row = 0; row < a[1].rows; row++) {
        if (!within(chosen[row], a[0].rows))
            return false;
        int64_t number = values[chosen[row]] - lowest + 1;
        if (number > 0)
            records[row * a[5].columns + word] |= (uint64_t)number << shift;
    }
    return true;
}

static bool unpack(const Argument *a)
{
    const uint64_t *records = a[0].data;
    int64_t word = a[1].integer, shift = a[2].integer, bits = a[3].integer, lowest = a[4].integer;
    int32_t nothing = (int32_t)a[5].integer, *out = a[6].data;
    if (!within(word, a[0].columns) || !within(shift, 64) || !within(bits, 64) || a[6].rows < a[0].rows)
        return false;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (int64_t row = 0; row < a[0].rows; row++) {
        uint64_t number = records[row * a[0].columns + word] >> shift & mask;
        out[row] = number ? (int32_t)(number - 1 + (uint64_t)lowest) : nothing;
    }
    return true;
}

enum { INTEGER, UNSIGNED }; /* as in unit_ids.py */

/* A number of 256 bits in limbs of 32, the lowest first, divided in place; returns the remainder. */
static uint64_t divided(uint64_t *limbs, uint64_t divisor)
{
    uint64_t rest = 0;
    for (int position = 7; position >= 0; position--) {
        uint64_t dividend = rest << 32 | limbs[position];
        limbs[position] = dividend / divisor;
        rest = dividend % divisor;
    }
    return rest;
}

static bool write_whole_decimals(const Argument *a)
{
    const uint64_t *wide = a[0].data;
    uint64_t *words = a[1].data;
    if (a[0].columns != 4 || a[1].columns < 2 || a[1].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        const uint64_t *number = wide + 4 * row;
        bool is_negative = number[3] >> 63;
        uint64_t limbs[8], carry = 1, rest = 0;
        for (int position = 0; position < 8; position++) {
            uint64_t limb = number[position >> 1] >> (position & 1 ? 32 : 0) & UINT32_MAX;
            if (is_negative) { /* two's complement */
                limb = (limb ^ UINT32_MAX) + carry;
                carry = limb >> 32;
            }
            limbs[position] = limb & UINT32_MAX;
        }
        for (int division = 0; division < 5; division++) /* by 10^38 in all */
            rest |= divided(limbs, division < 4 ? 1000000000 : 100);
        for (int position = 2; position < 8; position++)
            rest |= limbs[position];
        uint64_t size = limbs[1] << 32 | limbs[0], half = UINT64_C(1) << 63;
        if (rest || (is_negative && size > half))
            continue;
        words[row * a[1].columns] = is_negative ? ~size + 1 : size;
        words[row * a[1].columns + 1] = size >= half && !is_negative ? UNSIGNED : INTEGER;
    }
    return true;
}

const Kernel UNIT_KERNELS[] = {
    {"hash_words", "uint64[2] uint64 uint64 uint64[1]!", hash_words},
    {"hash_texts", "int64[1] uint8[1] uint64 uint64 uint64[2]!", hash_texts},
    {"assign_parts", "uint64[2] uint64 uint64 int64 int64 int64 boolean int32[1]!", assign_parts},
    {"sort_by_part", "int32[1] int64[1]! int32[1]!", sort_by_part},
    {"number_units", "uint64[2] uint64 uint64 int32[1]! int32[1]! int32[1]!", number_units},
    {"settle_ties", "uint64[2] uint64[1] int64[1]!", settle_ties},
    {"rank_rows", "uint64[2] uint64[1] uint64 uint64 int32[1]! uint64[1]!", rank_rows},
    {"take_first", "int64[1] int32[1] int64 int32[1]! boolean[1]!", take_first},
    {"pack_units", "uint64[2] int32[1] uint64[2]!", pack_units},
    {"pack", "int32[1] int32[1] int64 int64 int64 uint64[2]!", pack},
    {"unpack", "uint64[2] int64 int64 int64 int64 int64 int32[1]!", unpack},
    {"write_whole_decimals", "uint64[2] uint64[2]!", write_whole_decimals},
    {0},
};
