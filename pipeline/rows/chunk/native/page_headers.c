/* Headers of pages of Parquet files, and the sizes that compressed ones state. See pages.h and paged_columns.py. */

#include "pages.h"

/* Page headers in Thrift's compact protocol. */

enum { STOP = 0, TRUE_TYPE = 1, FALSE_TYPE = 2, INT32_TYPE = 5, INT64_TYPE = 6, BINARY_TYPE = 8, STRUCT_TYPE = 12 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_2 = 3 };
enum { MOST_FIELDS = 8 };

typedef struct Field {
    int id, type, slot; /* the type of a truth value is TRUE_TYPE */
    bool is_required;
    const struct Field *fields;
} Field;

static const Field STATISTICS[] = {
    {1, BINARY_TYPE, NO_SLOT, false, 0}, {2, BINARY_TYPE, NO_SLOT, false, 0}, {3, INT64_TYPE, NO_SLOT, false, 0},
    {4, INT64_TYPE, NO_SLOT, false, 0},  {5, BINARY_TYPE, NO_SLOT, false, 0}, {6, BINARY_TYPE, NO_SLOT, false, 0},
    {7, TRUE_TYPE, NO_SLOT, false, 0},   {8, TRUE_TYPE, NO_SLOT, false, 0},   {0}};
static const Field DATA[] = {{1, INT32_TYPE, N_VALUES, true, 0},
                             {2, INT32_TYPE, ENCODING, true, 0},
                             {3, INT32_TYPE, LEVEL_ENCODING, true, 0},
                             {4, INT32_TYPE, REPEATED_ENCODING, true, 0},
                             {5, STRUCT_TYPE, NO_SLOT, false, STATISTICS},
                             {0}};
static const Field DICTIONARY[] = {{1, INT32_TYPE, N_VALUES, true, 0},
                                   {2, INT32_TYPE, ENCODING, true, 0},
                                   {3, TRUE_TYPE, IS_SORTED, false, 0},
                                   {0}};
static const Field DATA_2[] = {{1, INT32_TYPE, N_VALUES, true, 0},   {2, INT32_TYPE, N_NULLS, true, 0},
                               {3, INT32_TYPE, N_ROWS, true, 0},     {4, INT32_TYPE, ENCODING, true, 0},
                               {5, INT32_TYPE, LEVELS, true, 0},     {6, INT32_TYPE, REPEATED_LEVELS, true, 0},
                               {7, TRUE_TYPE, IS_COMPRESSED, false, 0}, {8, STRUCT_TYPE, NO_SLOT, false, STATISTICS},
                               {0}};
static const Field PAGE[] = {{1, INT32_TYPE, KIND, true, 0},
                             {2, INT32_TYPE, UNCOMPRESSED, true, 0},
                             {3, INT32_TYPE, COMPRESSED, true, 0},
                             {4, INT32_TYPE, CRC, false, 0},
                             {5, STRUCT_TYPE, NO_SLOT, false, DATA},
                             {7, STRUCT_TYPE, NO_SLOT, false, DICTIONARY},
                             {8, STRUCT_TYPE, NO_SLOT, false, DATA_2},
                             {0}};

/* Read a struct: its fields in ascending order, none that is unknown; `seen` has a bit for each. */
static Outcome read_struct(Bytes *bytes, const Field *fields, int64_t *slots, unsigned *seen)
{
    int id = 0;
    *seen = 0;
    for (;;) {
        if (bytes->at == bytes->end)
            return ENDS;
        uint8_t header = *bytes->at++;
        if (header == STOP)
            break;
        int type = header & 0x0F;
        id += header >> 4;
        if (header < 0x10)
            return WRONG;
        const Field *field = fields;
        while (field->id && field->id != id)
            field++;
        if (!field->id || type != (field->type == TRUE_TYPE && type == FALSE_TYPE ? FALSE_TYPE : field->type))
            return WRONG;
        *seen |= 1u << (field - fields);
        uint64_t number = 0;
        Outcome outcome = READ;
        if (type == STRUCT_TYPE) {
            unsigned inner;
            outcome = read_struct(bytes, field->fields, slots, &inner);
        } else if (type == INT32_TYPE || type == INT64_TYPE) {
            outcome = read_varint(bytes, type == INT32_TYPE ? 32 : 64, &number);
            number = (number >> 1) ^ (0 - (number & 1));
        } else if (type == BINARY_TYPE) {
            outcome = read_varint(bytes, 31, &number);
            if (outcome == READ && number > (uint64_t)(bytes->end - bytes->at))
                outcome = ENDS;
            else if (outcome == READ)
                bytes->at += number;
        } else
            number = type == TRUE_TYPE;
        if (outcome != READ)
            return outcome;
        if (field->slot != NO_SLOT)
            slots[field->slot] = (int64_t)number;
    }
    for (const Field *field = fields; field->id; field++)
        if (field->is_required && !(*seen >> (field - fields) & 1))
            return WRONG;
    return READ;
}

/* Encodings: PLAIN 0, PLAIN_DICTIONARY 2, RLE 3, BIT_PACKED 4, RLE_DICTIONARY 8. */
static Outcome read_header(Bytes *bytes, int64_t *slots)
{
    enum { HAS_DATA = 1 << 4, HAS_DICTIONARY = 1 << 5, HAS_DATA_2 = 1 << 6 };
    unsigned seen;
    memset(slots, 0, N_SLOTS * sizeof *slots);
    slots[IS_COMPRESSED] = 1;
    slots[LEVELS] = slots[N_NULLS] = -1;
    slots[CRC] = -1;
    Outcome outcome = read_struct(bytes, PAGE, slots, &seen);
    if (outcome != READ)
        return outcome;
    unsigned inner = seen & (HAS_DATA | HAS_DICTIONARY | HAS_DATA_2);
    int64_t kind = slots[KIND], encoding = slots[ENCODING];
    bool is_coded = encoding == 0 || encoding == 2 || encoding == 8;
    bool is_right =
        kind == DATA_PAGE ? inner == HAS_DATA && is_coded && slots[LEVEL_ENCODING] == 3 &&
                                (slots[REPEATED_ENCODING] == 3 || slots[REPEATED_ENCODING] == 4)
        : kind == DICTIONARY_PAGE ? inner == HAS_DICTIONARY && (encoding == 0 || encoding == 2)
        : kind == DATA_PAGE_2
            ? inner == HAS_DATA_2 && is_coded && !slots[REPEATED_LEVELS] && slots[N_ROWS] == slots[N_VALUES] &&
                  0 <= slots[LEVELS] && slots[LEVELS] <= slots[COMPRESSED] && slots[LEVELS] <= slots[UNCOMPRESSED] &&
                  0 <= slots[N_NULLS] && slots[N_NULLS] <= slots[N_VALUES]
            : false;
    if (seen >> 3 & 1)
        slots[CRC] &= UINT32_MAX;
    /* Arrow takes a page without rows for the end of its column, where a read begins with it. */
    int64_t fewest = kind != DICTIONARY_PAGE;
    return is_right && slots[N_VALUES] >= fewest && slots[COMPRESSED] >= 0 && slots[UNCOMPRESSED] >= 0 ? READ : WRONG;
}

/* What a compressed page says that it holds, in a form in which decompressing checks it; -1 where it does not. A
   frame of Zstandard ends with the page, so that frames one after the other are the pages one after the other. */

enum { STORED, SNAPPY, ZSTD }; /* as in paged_columns.py */

static int64_t stated_by_snappy(Bytes bytes)
{
    uint64_t size;
    return read_varint(&bytes, 32, &size) == READ ? (int64_t)size : -1;
}

static int64_t stated_by_zstd(Bytes bytes)
{
    static const uint8_t MAGIC[] = {0x28, 0xB5, 0x2F, 0xFD};
    /* The longest header has 14 bytes; a frame with a shorter one may have fewer. */
    uint8_t header_bytes[14] = {0};
    int64_t length_of_all = bytes.end - bytes.at;
    memcpy(header_bytes, bytes.at, length_of_all < 14 ? (size_t)length_of_all : 14);
    if (memcmp(header_bytes, MAGIC, sizeof MAGIC))
        return -1;
    uint8_t flags = header_bytes[4];
    bool is_single = flags >> 5 & 1, has_checksum = flags >> 2 & 1;
    int n_bytes = flags >> 6 ? 1 << (flags >> 6) : 1;
    if (flags & 0x1B || (!is_single && !(flags >> 6))) /* a dictionary, bits that mean nothing, no size */
        return -1;
    int begin = is_single ? 5 : 6;
    uint64_t size = 0;
    if (begin + n_bytes > length_of_all)
        return -1;
    memcpy(&size, header_bytes + begin, (size_t)n_bytes);
    bytes.at += begin + n_bytes;
    size += n_bytes == 2 ? 256 : 0;
    for (bool is_last = false; !is_last;) { /* blocks: three bytes with kind and size, and what they hold */
        if (bytes.end - bytes.at < 3)
            return -1;
        uint32_t header = bytes.at[0] | (uint32_t)bytes.at[1] << 8 | (uint32_t)bytes.at[2] << 16;
        is_last = header & 1;
        uint32_t kind = header >> 1 & 3, length = kind == 1 ? 1 : header >> 3;
        bytes.at += 3;
        if (kind == 3 || length > bytes.end - bytes.at)
            return -1;
        bytes.at += length;
    }
    return bytes.end - bytes.at == (has_checksum ? 4 : 0) && size <= INT32_MAX ? (int64_t)size : -1;
}

static bool is_stated(const uint8_t *page, const int64_t *slots, int64_t codec)
{
    int64_t levels = slots[LEVELS] > 0 ? slots[LEVELS] : 0;
    Bytes bytes = {page + levels, page + slots[COMPRESSED]};
    int64_t size = slots[UNCOMPRESSED] - levels;
    if (codec == STORED || !slots[IS_COMPRESSED])
        return bytes.end - bytes.at == size;
    return size == (codec == ZSTD ? stated_by_zstd(bytes) : stated_by_snappy(bytes));
}

/* List the pages that lie wholly within some bytes, which begin with a header, a page a line; the first line
   has their number and where the last one ends. */
static bool page_headers(const Argument *a)
{
    const uint8_t *first = a[0].data;
    int64_t *table = a[2].data, n_pages = 0, end = 0, slots[N_SLOTS];
    if (a[2].columns != N_COLUMNS || a[2].rows < 2)
        return false;
    Bytes bytes = {first, first + a[0].rows};
    while (bytes.at < bytes.end && n_pages + 1 < a[2].rows) {
        Outcome outcome = read_header(&bytes, slots);
        if (outcome == WRONG)
            return false;
        if (outcome == ENDS || slots[COMPRESSED] > bytes.end - bytes.at)
            break;
        if (!is_stated(bytes.at, slots, a[1].integer))
            return false;
        slots[BEGIN] = bytes.at - first;
        bytes.at += slots[COMPRESSED];
        end = bytes.at - first;
        memcpy(table + ++n_pages * N_COLUMNS, slots, N_COLUMNS * sizeof *slots);
    }
    memset(table, 0, N_COLUMNS * sizeof *table);
    table[0] = n_pages;
    table[1] = end;
    return true;
}

/* Move pages that are listed next to the first of them, in the same bytes, and list where each begins once they
   are decompressed. */
static bool pack_pages(const Argument *a)
{
    uint8_t *bytes = a[0].data;
    int64_t *pages = a[1].data, size = 0;
    if (a[1].columns != N_COLUMNS || !a[1].rows || !within(pages[BEGIN], a[0].rows + 1))
        return false;
    int64_t end = pages[BEGIN];
    for (int64_t *page = pages; page < pages + a[1].rows * N_COLUMNS; page += N_COLUMNS) {
        if (page[BEGIN] < end || page[COMPRESSED] < 0 || page[BEGIN] > a[0].rows - page[COMPRESSED] ||
            page[UNCOMPRESSED] < 0 || page[UNCOMPRESSED] > INT32_MAX || size > INT32_MAX)
            return false;
        memmove(bytes + end, bytes + page[BEGIN], (size_t)page[COMPRESSED]);
        end += page[COMPRESSED];
        page[BEGIN] = size;
        size += page[UNCOMPRESSED];
    }
    return true;
}

const Kernel HEADER_KERNELS[] = {
    {"page_headers", "uint8[1] int64 int64[2]!", page_headers},
    {"pack_pages", "uint8[1]! int64[2]!", pack_pages},
    {0},
};
