/* Pages of Parquet files: their headers, and values of columns that are not nested. See sources/pages.py.

   The bytes may be anybody's. Every position is checked against the end of its array before it is read, and
   every index before it is looked up. What is not exactly as the format has it, to the last byte of a page, is
   refused, and Arrow reads it. */

#include <string.h>

#include "call.h"

#define INLINE static inline __attribute__((always_inline))

/* Headers: Thrift's compact protocol, as writers of Parquet use it. Fields come in the order of their numbers,
   each at most once, of the type that the format gives them; others are refused. */

typedef struct {
    const uint8_t *bytes;
    int64_t at, size;
} Cursor;

enum { END = 0, YES = 1, NO = 2, I32 = 5, I64 = 6, BINARY = 8, STRUCT = 12 };
enum { MOST_FIELDS = 9 };

static bool read_natural(Cursor *from, int most_bits, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < most_bits; shift += 7) {
        if (from->at >= from->size)
            return false;
        uint8_t byte = from->bytes[from->at++];
        uint64_t digits = byte & 0x7F;
        if (shift + 7 > most_bits && digits >> (most_bits - shift))
            return false;
        *number |= digits << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool read_integer(Cursor *from, int bits, int64_t *number)
{
    uint64_t natural;
    if (!read_natural(from, bits, &natural))
        return false;
    *number = (int64_t)(natural >> 1) ^ -(int64_t)(natural & 1);
    return true;
}

/* Read the number of the next field, from 1 on, or 0 at the end, and its type. */
static bool read_field(Cursor *from, const uint8_t types[MOST_FIELDS + 1], int *field, int *type)
{
    if (from->at >= from->size)
        return false;
    uint8_t byte = from->bytes[from->at++];
    *type = byte & 0x0F;
    if (*type == END) {
        *field = 0;
        return byte == 0;
    }
    *field += byte >> 4;
    if (!(byte >> 4) || *field > MOST_FIELDS)
        return false;
    return types[*field] == *type || (types[*field] == YES && *type == NO);
}

/* Read the numbers and truths of a structure; its texts are passed over, and of structures its caller knows. */
static bool read_structure(Cursor *from, const uint8_t types[MOST_FIELDS + 1], int64_t values[MOST_FIELDS + 1],
                           uint32_t *seen, bool (*inner)(Cursor *, int, int64_t *), int64_t *out)
{
    *seen = 0;
    for (int field = 0, type;;) {
        if (!read_field(from, types, &field, &type))
            return false;
        if (!field)
            return true;
        *seen |= UINT32_C(1) << field;
        if (type == YES || type == NO)
            values[field] = type == YES;
        else if (type == STRUCT) {
            if (!inner || !inner(from, field, out))
                return false;
        } else if (type == BINARY) {
            uint64_t length;
            if (!read_natural(from, 32, &length) || length > (uint64_t)(from->size - from->at))
                return false;
            from->at += (int64_t)length;
        } else if (!read_integer(from, type == I32 ? 32 : 64, &values[field]))
            return false;
    }
}

static const uint8_t HEADER_FIELDS[MOST_FIELDS + 1] = {0, I32, I32, I32, I32, STRUCT, 0, STRUCT, STRUCT, 0};
static const uint8_t DATA_FIELDS[MOST_FIELDS + 1] = {0, I32, I32, I32, I32, STRUCT, 0, 0, 0, 0};
static const uint8_t DICTIONARY_FIELDS[MOST_FIELDS + 1] = {0, I32, I32, YES, 0, 0, 0, 0, 0, 0};
static const uint8_t SECOND_FIELDS[MOST_FIELDS + 1] = {0, I32, I32, I32, I32, I32, I32, YES, STRUCT, 0};
static const uint8_t STATISTICS_FIELDS[MOST_FIELDS + 1] = {0,      BINARY, BINARY, I64, I64,
                                                           BINARY, BINARY, YES,    YES, I64};

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, SECOND_DATA_PAGE = 3 };

/* What a header says, as pages.py reads it. */
enum {
    HEADER_BYTES, PAGE_TYPE, UNCOMPRESSED, COMPRESSED, HAS_CHECKSUM, CHECKSUM, N_VALUES, ENCODING,
    LEVEL_ENCODING, N_NULLS, N_ROWS, LEVEL_BYTES, REPETITION_BYTES, IS_COMPRESSED, HEADER_NUMBERS
};

static bool read_statistics(Cursor *from, int field, int64_t *out)
{
    int64_t values[MOST_FIELDS + 1];
    uint32_t seen;
    (void)field;
    return read_structure(from, STATISTICS_FIELDS, values, &seen, NULL, out);
}

enum { OF_DATA = 5, OF_DICTIONARY = 7, OF_SECOND_DATA = 8 };

static bool read_page_kind(Cursor *from, int field, int64_t *out)
{
    int64_t values[MOST_FIELDS + 1] = {0};
    uint32_t seen;
    out[N_NULLS] = out[N_ROWS] = -1;
    out[LEVEL_BYTES] = out[REPETITION_BYTES] = 0;
    out[IS_COMPRESSED] = 1;
    if (field == OF_DICTIONARY) {
        if (!read_structure(from, DICTIONARY_FIELDS, values, &seen, NULL, out) || (seen & 0x06) != 0x06)
            return false;
        out[ENCODING] = values[2];
    } else if (field == OF_DATA) {
        if (!read_structure(from, DATA_FIELDS, values, &seen, read_statistics, out) || (seen & 0x1E) != 0x1E)
            return false;
        out[ENCODING] = values[2];
        out[LEVEL_ENCODING] = values[3];
    } else {
        if (!read_structure(from, SECOND_FIELDS, values, &seen, read_statistics, out) || (seen & 0x7E) != 0x7E)
            return false;
        out[N_NULLS] = values[2];
        out[N_ROWS] = values[3];
        out[ENCODING] = values[4];
        out[LEVEL_BYTES] = values[5];
        out[REPETITION_BYTES] = values[6];
        if (seen >> 7 & 1)
            out[IS_COMPRESSED] = values[7];
    }
    out[N_VALUES] = values[1];
    return true;
}

static bool page_header(const Argument *a)
{
    Cursor from = {.bytes = a[0].data, .size = a[0].rows};
    int64_t *out = a[1].data, values[MOST_FIELDS + 1] = {0};
    uint32_t seen;
    if (a[1].rows != HEADER_NUMBERS)
        return false;
    memset(out, 0, HEADER_NUMBERS * sizeof *out);
    if (!read_structure(&from, HEADER_FIELDS, values, &seen, read_page_kind, out) || (seen & 0x0E) != 0x0E)
        return false;
    out[HEADER_BYTES] = from.at;
    out[PAGE_TYPE] = values[1];
    out[UNCOMPRESSED] = values[2];
    out[COMPRESSED] = values[3];
    out[HAS_CHECKSUM] = seen >> 4 & 1;
    out[CHECKSUM] = (int64_t)(uint32_t)values[4];
    /* Exactly the structure that the type names. */
    uint32_t kinds = seen >> OF_DATA;
    return (values[1] == DATA_PAGE && kinds == 1) || (values[1] == DICTIONARY_PAGE && kinds == 1 << 2) ||
           (values[1] == SECOND_DATA_PAGE && kinds == 1 << 3);
}

/* What a footer says of where columns lie: the rest is passed over. */

enum { BYTE = 3, I16 = 4, DOUBLE = 7, LIST = 9, SET = 10, MOST_NESTED = 16 };

static bool pass_over(Cursor *from, int type, int depth);

/* Read the number of the next field, which is above the last one's, or 0 at the end, and its type. */
static bool next_field(Cursor *from, int *field, int *type)
{
    if (from->at >= from->size)
        return false;
    uint8_t byte = from->bytes[from->at++];
    *type = byte & 0x0F;
    *field = *type == END ? 0 : *field + (byte >> 4);
    return *type == END ? byte == 0 : byte >> 4 && *field < 256;
}

/* Read how many values a list has, none of which is shorter than a byte, and their type. */
static bool read_list(Cursor *from, int64_t *length, int *type)
{
    if (from->at >= from->size)
        return false;
    uint8_t byte = from->bytes[from->at++];
    uint64_t n_values = byte >> 4;
    *type = byte & 0x0F;
    if (n_values == 15 && !read_natural(from, 32, &n_values))
        return false;
    *length = (int64_t)n_values;
    return *length <= from->size - from->at;
}

static bool pass_bytes(Cursor *from, uint64_t n_bytes)
{
    if (n_bytes > (uint64_t)(from->size - from->at))
        return false;
    from->at += (int64_t)n_bytes;
    return true;
}

static bool pass_over_structure(Cursor *from, int depth)
{
    for (int field = 0, type;;) {
        if (!next_field(from, &field, &type))
            return false;
        if (!field)
            return true;
        if (type != YES && type != NO && !pass_over(from, type, depth + 1))
            return false;
    }
}

static bool pass_over(Cursor *from, int type, int depth)
{
    uint64_t natural;
    int64_t length;
    int inner;
    if (depth > MOST_NESTED)
        return false;
    switch (type) {
    case YES: case NO: case BYTE:
        return pass_bytes(from, 1);
    case I16: case I32: case I64:
        return read_natural(from, 64, &natural);
    case DOUBLE:
        return pass_bytes(from, 8);
    case BINARY:
        return read_natural(from, 32, &natural) && pass_bytes(from, natural);
    case STRUCT:
        return pass_over_structure(from, depth);
    case LIST: case SET:
        if (!read_list(from, &length, &inner))
            return false;
        for (; length; length--)
            if (!pass_over(from, inner, depth + 1))
                return false;
        return true;
    default:
        return false;
    }
}

/* The numbers of a column in a row group, as parquet_pages.py reads them. */
enum {
    STORED_TYPE, ENCODINGS, CODEC, CHUNK_VALUES, CHUNK_UNCOMPRESSED, CHUNK_COMPRESSED, DATA_OFFSET,
    DICTIONARY_OFFSET, CHUNK_NUMBERS
};

static bool read_encodings(Cursor *from, int64_t *mask)
{
    int64_t length, encoding;
    int type;
    if (!read_list(from, &length, &type) || type != I32)
        return false;
    for (; length; length--) {
        if (!read_integer(from, 32, &encoding) || !within(encoding, 32))
            return false;
        *mask |= INT64_C(1) << encoding;
    }
    return true;
}

static bool read_chunk(Cursor *from, int64_t *out)
{
    static const int places[12] = {-1, STORED_TYPE,        -1,               -1, CODEC,       CHUNK_VALUES,
                                   CHUNK_UNCOMPRESSED, CHUNK_COMPRESSED, -1, DATA_OFFSET, -1, DICTIONARY_OFFSET};
    uint32_t seen = 0;
    out[ENCODINGS] = 0;
    out[DICTIONARY_OFFSET] = -1;
    for (int field = 0, type;;) {
        if (!next_field(from, &field, &type))
            return false;
        if (!field)
            return (seen & 0x2F6) == 0x2F6;
        seen |= field < 12 ? UINT32_C(1) << field : 0;
        bool is_short = field == 1 || field == 4;
        if (field == 2) {
            if (type != LIST || !read_encodings(from, &out[ENCODINGS]))
                return false;
        } else if (field < 12 && places[field] >= 0) {
            if (type != (is_short ? I32 : I64) || !read_integer(from, is_short ? 32 : 64, &out[places[field]]))
                return false;
        } else if (type != YES && type != NO && !pass_over(from, type, 0))
            return false;
    }
}

/* One column of one row group: within this file, and not encrypted. */
static bool read_column(Cursor *from, int64_t *out)
{
    bool is_there = false;
    for (int field = 0, type;;) {
        if (!next_field(from, &field, &type))
            return false;
        if (!field)
            return is_there;
        if (field == 3) {
            if (type != STRUCT || !read_chunk(from, out))
                return false;
            is_there = true;
        } else if (field == 1 || field > 7 || type == YES || type == NO || !pass_over(from, type, 0))
            return false;
    }
}

/* Read all columns of all row groups, a line each. */
static bool read_row_groups(Cursor *from, int64_t *out, int64_t n_chunks)
{
    int64_t n_groups, n_columns, chunk = 0;
    int type;
    if (!read_list(from, &n_groups, &type) || (type != STRUCT && n_groups))
        return false;
    for (; n_groups; n_groups--)
        for (int field = 0;;) {
            if (!next_field(from, &field, &type))
                return false;
            if (!field)
                break;
            if (field != 1) {
                if (type == YES || type == NO || !pass_over(from, type, 0))
                    return false;
                continue;
            }
            if (type != LIST || !read_list(from, &n_columns, &type) || type != STRUCT)
                return false;
            for (; n_columns; n_columns--, chunk++)
                if (chunk >= n_chunks || !read_column(from, out + chunk * CHUNK_NUMBERS))
                    return false;
        }
    return chunk == n_chunks;
}

static bool column_chunks(const Argument *a)
{
    Cursor from = {.bytes = a[0].data, .size = a[0].rows};
    if (a[1].columns != CHUNK_NUMBERS)
        return false;
    bool is_there = false;
    for (int field = 0, type;;) {
        if (!next_field(&from, &field, &type))
            return false;
        if (!field)
            return is_there && from.at == from.size;
        if (field == 4) {
            if (type != LIST || !read_row_groups(&from, a[1].data, a[1].rows))
                return false;
            is_there = true;
        } else if (field > 7 || type == YES || type == NO || !pass_over(&from, type, 0)) /* 8: encryption */
            return false;
    }
}

static bool dictionary_texts(const Argument *a)
{
    const uint8_t *page = a[0].data;
    int32_t *ends = a[1].data;
    uint8_t *texts = a[2].data;
    int64_t size = a[0].rows, at = 0, n_bytes = 0;
    if (a[1].rows < 1 || size > INT32_MAX)
        return false;
    ends[0] = 0;
    for (int64_t entry = 1; entry < a[1].rows; entry++) {
        if (size - at < 4)
            return false;
        uint32_t length = page[at] | (uint32_t)page[at + 1] << 8 | (uint32_t)page[at + 2] << 16 |
                          (uint32_t)page[at + 3] << 24;
        at += 4;
        if (length > (uint64_t)(size - at) || length > (uint64_t)(a[2].rows - n_bytes))
            return false;
        memcpy(texts + n_bytes, page + at, length);
        at += length;
        n_bytes += length;
        ends[entry] = (int32_t)n_bytes;
    }
    return at == size && n_bytes == a[2].rows;
}

/* Runs of levels and of dictionary indices: so many times one number, or numbers of `width` bits, eight by
   eight. A stream stands within a run. */

typedef struct {
    const uint8_t *bytes;
    int64_t size;   /* of the bytes */
    int64_t start;  /* where the run's packed numbers begin; of a repeated one, where the next run begins */
    int64_t used;   /* packed numbers that were taken */
    int64_t left;   /* numbers of the run that were not */
    int64_t packed; /* 1: packed; 0: repeated */
    int64_t value;  /* the repeated one */
    int width;
} Stream;

enum { STREAM_NUMBERS = 5, LONGEST_RUN = INT32_MAX };

static bool load_stream(Stream *stream, const int64_t *state)
{
    stream->start = state[0];
    stream->used = state[1];
    stream->left = state[2];
    stream->packed = state[3];
    stream->value = state[4];
    if (stream->start < 0 || stream->start > stream->size || stream->used < 0 || stream->left < 0 ||
        stream->used > LONGEST_RUN || stream->left > LONGEST_RUN || stream->width < 0 || stream->width > 32)
        return false;
    return !stream->packed || (stream->used + stream->left) * stream->width <= 8 * (stream->size - stream->start);
}

static void store_stream(const Stream *stream, int64_t *state)
{
    state[0] = stream->start;
    state[1] = stream->used;
    state[2] = stream->left;
    state[3] = stream->packed;
    state[4] = stream->value;
}

static bool next_run(Stream *stream)
{
    if (stream->packed)
        stream->start += (stream->used + 7) / 8 * stream->width;
    Cursor from = {.bytes = stream->bytes, .at = stream->start, .size = stream->size};
    uint64_t header;
    if (!read_natural(&from, 32, &header))
        return false;
    uint64_t count = header >> 1;
    stream->packed = header & 1;
    stream->used = 0;
    if (!count || count > LONGEST_RUN / 8)
        return false;
    if (stream->packed) {
        stream->start = from.at;
        stream->left = (int64_t)count * 8;
        return (int64_t)count * stream->width <= from.size - from.at;
    }
    int64_t n_bytes = (stream->width + 7) / 8;
    if (n_bytes > from.size - from.at)
        return false;
    uint64_t value = 0;
    for (int64_t byte = 0; byte < n_bytes; byte++)
        value |= (uint64_t)from.bytes[from.at + byte] << (8 * byte);
    stream->value = (int64_t)value;
    stream->left = (int64_t)count;
    stream->start = from.at + n_bytes;
    return !(value >> stream->width);
}

/* Tell whether nothing is left but what fills the last packed run, as writers do by eight or more. */
static bool is_at_end(const Stream *stream)
{
    if (!stream->packed)
        return stream->left == 0 && stream->start == stream->size;
    return stream->start + (stream->used + stream->left) / 8 * stream->width == stream->size;
}

/* Eight bytes from a place on; those beyond the end are zero. Numbers are little-endian in files. */
INLINE uint64_t load_word(const uint8_t *bytes, int64_t at, int64_t size)
{
    uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (size - at >= 8) {
        memcpy(&word, bytes + at, 8);
        return word;
    }
#endif
    for (int64_t byte = 0; byte < 8 && at + byte < size; byte++)
        word |= (uint64_t)bytes[at + byte] << (8 * byte);
    return word;
}

INLINE uint64_t load_bits(const Stream *stream, int64_t number)
{
    int64_t bit = number * stream->width;
    return load_word(stream->bytes, stream->start + (bit >> 3), stream->size) >> (bit & 7);
}

/* Rows are read in blocks that stay in the nearest cache. */
enum { BLOCK = 1024, WORDS = BLOCK / 64 };

INLINE void unpack_numbers(const Stream *stream, int64_t n, uint32_t *out)
{
    int width = stream->width;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    int64_t at = 0;
    for (; at < n && (stream->used + at) & 7; at++)
        out[at] = (uint32_t)(load_bits(stream, stream->used + at) & mask);
    if (width <= 8)
        for (; at + 8 <= n; at += 8) {
            uint64_t word = load_bits(stream, stream->used + at);
            for (int step = 0; step < 8; step++)
                out[at + step] = (uint32_t)(word >> (step * width) & mask);
        }
    else if (width <= 16)
        for (; at + 8 <= n; at += 8)
            for (int half = 0; half < 8; half += 4) {
                uint64_t word = load_bits(stream, stream->used + at + half);
                for (int step = 0; step < 4; step++)
                    out[at + half + step] = (uint32_t)(word >> (step * width) & mask);
            }
    for (; at < n; at++)
        out[at] = (uint32_t)(load_bits(stream, stream->used + at) & mask);
}

INLINE bool take_numbers(Stream *stream, int64_t n, uint32_t *out)
{
    while (n) {
        if (!stream->left && !next_run(stream))
            return false;
        int64_t taken = n < stream->left ? n : stream->left;
        if (stream->packed) {
            unpack_numbers(stream, taken, out);
            stream->used += taken;
        } else
            for (int64_t at = 0; at < taken; at++)
                out[at] = (uint32_t)stream->value;
        stream->left -= taken;
        out += taken;
        n -= taken;
    }
    return true;
}

/* Write up to 57 bits into words whose bits from there on are zero. */
INLINE void put_bits(uint64_t words[WORDS + 1], int64_t at, uint64_t bits)
{
    int shift = (int)(at & 63);
    words[at >> 6] |= bits << shift;
    if (shift)
        words[(at >> 6) + 1] |= bits >> (64 - shift);
}

/* Take which of the next rows have a value, one bit each. */
INLINE bool take_levels(Stream *stream, int64_t n, uint64_t words[WORDS + 1])
{
    memset(words, 0, (WORDS + 1) * sizeof *words);
    for (int64_t at = 0; at < n;) {
        if (!stream->left && !next_run(stream))
            return false;
        int64_t end = at + (n - at < stream->left ? n - at : stream->left);
        int64_t taken = end - at;
        for (int64_t step; at < end; at += step) {
            step = end - at < 56 ? end - at : 56;
            uint64_t bits = stream->packed ? load_bits(stream, stream->used) : -(uint64_t)stream->value;
            put_bits(words, at, bits & ((UINT64_C(1) << step) - 1));
            if (stream->packed)
                stream->used += step;
        }
        stream->left -= taken;
    }
    return true;
}

INLINE int64_t count_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (int64_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The ones that a word begins with, from the lowest bit on. */
INLINE int64_t count_ones(uint64_t word) { return count_bits(word & ~(word + 1)); }

/* Write bits behind others, as Arrow has them; they are zero before. */
INLINE void put_validity(uint8_t *validity, int64_t at, const uint64_t words[WORDS + 1], int64_t n)
{
    for (int64_t row = 0; row < n; row += 8) {
        uint32_t bits = (uint32_t)(words[row >> 6] >> (row & 63) & 0xFF) << (at & 7);
        int64_t byte = (at + row) >> 3;
        validity[byte] |= (uint8_t)bits;
        if (bits >> 8)
            validity[byte + 1] |= (uint8_t)(bits >> 8);
    }
}

/* Where a page stands. */
enum {
    ROWS_LEFT, IS_NULLABLE, IS_PLAIN, INDEX_WIDTH, NULLS, LEVELS,
    VALUES = LEVELS + STREAM_NUMBERS, STATE_NUMBERS = VALUES + STREAM_NUMBERS
};

typedef struct {
    Stream levels, values;
    int64_t *state;
    int64_t first, n_rows;
    uint8_t *validity;
} Page;

/* Take the arguments that all of three kernels have, and check that they fit. */
static bool take_page(const Argument *a, Page *page)
{
    int64_t *state = page->state = a[3].data;
    if (a[3].rows != STATE_NUMBERS)
        return false;
    page->levels = (Stream){.bytes = a[0].data, .size = a[0].rows, .width = 1};
    page->values = (Stream){.bytes = a[1].data, .size = a[1].rows, .width = (int)state[INDEX_WIDTH]};
    page->first = a[4].integer;
    page->n_rows = a[5].integer;
    page->validity = a[7].data;
    return within(state[INDEX_WIDTH], 33) && load_stream(&page->levels, state + LEVELS) &&
           load_stream(&page->values, state + VALUES) && page->first >= 0 && page->n_rows >= 0 &&
           page->n_rows <= state[ROWS_LEFT] && page->first <= a[6].rows && page->n_rows <= a[6].rows - page->first &&
           (!state[IS_NULLABLE] || (page->first + page->n_rows + 7) / 8 <= a[7].rows);
}

/* Keep where the page stands; its last row has to be at the end of both. */
static bool leave_page(Page *page)
{
    int64_t *state = page->state;
    state[ROWS_LEFT] -= page->n_rows;
    store_stream(&page->levels, state + LEVELS);
    store_stream(&page->values, state + VALUES);
    if (state[ROWS_LEFT])
        return true;
    bool is_through = state[IS_PLAIN] ? page->values.start == page->values.size : is_at_end(&page->values);
    return is_through && (!state[IS_NULLABLE] || is_at_end(&page->levels));
}

/* Which rows of a block have a value, and how many. */
INLINE bool take_validity(Page *page, int64_t row, int64_t n, uint64_t words[WORDS + 1], int64_t *present)
{
    *present = n;
    if (!page->state[IS_NULLABLE])
        return true;
    if (!take_levels(&page->levels, n, words))
        return false;
    *present = 0;
    for (int word = 0; word < WORDS; word++)
        *present += count_bits(words[word]);
    page->state[NULLS] += n - *present;
    put_validity(page->validity, page->first + row, words, n);
    return true;
}

INLINE bool take_indices(Page *page, int64_t n, int64_t n_dictionary, uint32_t indices[BLOCK + 1])
{
    if (!take_numbers(&page->values, n, indices))
        return false;
    uint32_t largest = 0;
    for (int64_t at = 0; at < n; at++)
        largest = largest > indices[at] ? largest : indices[at];
    indices[n] = 0;
    return !n || largest < n_dictionary;
}

enum { FEW_NULLS = 48 }; /* values of 64 rows from which on they are copied run by run */

/* One kernel for each size of a value. A row without a value gets a zero. Of texts the indices are kept. */
#define READER(NAME, TYPE, VALUE_OF_INDEX, N_DICTIONARY)                                                       \
    ON_VECTORS static bool NAME(const Argument *a)                                                             \
    {                                                                                                          \
        const TYPE *dictionary = a[2].data;                                                                    \
        int64_t n_dictionary = N_DICTIONARY;                                                                   \
        Page page;                                                                                             \
        (void)dictionary;                                                                                      \
        if (!take_page(a, &page))                                                                              \
            return false;                                                                                      \
        for (int64_t row = 0; row < page.n_rows; row += BLOCK) {                                               \
            TYPE *out = (TYPE *)a[6].data + page.first + row, values[BLOCK + 1];                               \
            uint32_t indices[BLOCK + 1];                                                                       \
            uint64_t words[WORDS + 1];                                                                         \
            int64_t n = page.n_rows - row < BLOCK ? page.n_rows - row : BLOCK, present, next = 0;              \
            if (!take_validity(&page, row, n, words, &present))                                                \
                return false;                                                                                  \
            TYPE *dense = present == n ? out : values;                                                         \
            if (page.state[IS_PLAIN]) {                                                                        \
                int64_t n_bytes = present * (int64_t)sizeof(TYPE);                                             \
                if (n_bytes > page.values.size - page.values.start)                                            \
                    return false;                                                                              \
                memcpy(dense, page.values.bytes + page.values.start, (size_t)n_bytes);                         \
                page.values.start += n_bytes;                                                                  \
            } else {                                                                                           \
                if (!take_indices(&page, present, n_dictionary, indices))                                      \
                    return false;                                                                              \
                for (int64_t at = 0; at < present; at++)                                                       \
                    dense[at] = VALUE_OF_INDEX(indices[at]);                                                   \
            }                                                                                                  \
            if (present == n)                                                                                  \
                continue;                                                                                      \
            values[present] = 0;                                                                               \
            for (int64_t start = 0; start < n; start += 64) {                                                  \
                uint64_t word = words[start >> 6];                                                             \
                int64_t end = n - start < 64 ? n - start : 64;                                                 \
                if (count_bits(word) < FEW_NULLS)                                                              \
                    for (int64_t step = 0; step < end; step++) {                                               \
                        TYPE is_present = (TYPE)(word >> step & 1);                                            \
                        out[start + step] = values[next] & (TYPE)-is_present;                                  \
                        next += (int64_t)is_present;                                                           \
                    }                                                                                          \
                else                                                                                           \
                    for (int64_t step = 0; step < end; step++) {                                               \
                        int64_t stop = step + count_ones(word >> step);                                        \
                        for (; step < stop; step++)                                                            \
                            out[start + step] = values[next++];                                                \
                        if (step < end)                                                                        \
                            out[start + step] = 0;                                                             \
                    }                                                                                          \
            }                                                                                                  \
        }                                                                                                      \
        return leave_page(&page);                                                                              \
    }

#define ITSELF(index) (index)
#define LOOKED_UP(index) (dictionary[index])

READER(page_indices, uint32_t, ITSELF, a[2].integer)
READER(page_words, uint32_t, LOOKED_UP, a[2].rows)
READER(page_long_words, uint64_t, LOOKED_UP, a[2].rows)

const Kernel PAGE_KERNELS[] = {
    {"column_chunks", "uint8[1] int64[2]!", column_chunks},
    {"page_header", "uint8[1] int64[1]!", page_header},
    {"dictionary_texts", "uint8[1] int32[1]! uint8[1]!", dictionary_texts},
    {"page_indices", "uint8[1] uint8[1] int64 int64[1]! int64 int64 int32[1]! uint8[1]!", page_indices},
    {"page_words", "uint8[1] uint8[1] int32[1] int64[1]! int64 int64 int32[1]! uint8[1]!", page_words},
    {"page_long_words", "uint8[1] uint8[1] int64[1] int64[1]! int64 int64 int64[1]! uint8[1]!", page_long_words},
    {0},
};
