/* Null levels, dictionary indices and values of flat columns, as codes. See pages.h and paged_columns.py. */

#include "pages.h"

/* Runs of numbers of some bits: one number repeated, or groups of eight, packed. */

enum { MOST_BITS = 24, DENSE = 2048 };

typedef struct {
    Bytes bytes;
    int width;
    int64_t left;          /* numbers of this run that are not yet read */
    const uint8_t *packed; /* where they lie, or NULL where they are one number */
    uint32_t number;
} Runs;

static bool next_run(Runs *runs)
{
    uint64_t header;
    if (read_varint(&runs->bytes, 32, &header) != READ || header < 2)
        return false;
    uint64_t size = header & 1 ? (header >> 1) * (uint64_t)runs->width : (uint64_t)(runs->width + 7) / 8;
    if (size > (uint64_t)(runs->bytes.end - runs->bytes.at))
        return false;
    const uint8_t *from = runs->bytes.at;
    runs->bytes.at += size;
    runs->packed = header & 1 ? from : NULL;
    runs->left = (int64_t)(header & 1 ? (header >> 1) * 8 : header >> 1);
    runs->number = 0;
    for (uint64_t byte = 0; !runs->packed && byte < size; byte++)
        runs->number |= (uint32_t)from[byte] << 8 * byte;
    return runs->packed || !(runs->number >> runs->width);
}

/* Whether runs hold so many numbers and end with the bytes: nothing is left but what fills the last group. */
static inline bool is_filling(const Runs *runs, int64_t beyond)
{
    return beyond == 0 || (beyond < 8 && runs->packed);
}

static inline __attribute__((always_inline)) void unpack_groups(const uint8_t *from, const uint8_t *end,
                                                                int width, int64_t n_groups, uint32_t *out)
{
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1);
    for (int64_t group = 0; group < n_groups; group++, from += width, out += 8) {
        uint8_t last[MOST_BITS + 8] = {0};
        const uint8_t *bytes = from;
        if (end - from < width + 8) { /* words of eight bytes would leave the array */
            memcpy(last, from, (size_t)width);
            bytes = last;
        }
        if (width <= 8) {
            uint64_t word;
            memcpy(&word, bytes, sizeof word);
            for (int place = 0; place < 8; place++)
                out[place] = (uint32_t)(word >> place * width) & mask;
        } else
            for (int place = 0; place < 8; place++) {
                uint32_t word;
                memcpy(&word, bytes + (place * width >> 3), sizeof word);
                out[place] = word >> (place * width & 7) & mask;
            }
    }
}

static void unpack(const uint8_t *from, const uint8_t *end, int width, int64_t n_groups, uint32_t *out)
{
#define UNPACK(width)                                    \
    case width:                                          \
        unpack_groups(from, end, width, n_groups, out);  \
        break;
    switch (width) {
        UNPACK(1) UNPACK(2) UNPACK(3) UNPACK(4) UNPACK(5) UNPACK(6) UNPACK(7) UNPACK(8)
        UNPACK(9) UNPACK(10) UNPACK(11) UNPACK(12) UNPACK(13) UNPACK(14) UNPACK(15) UNPACK(16)
        UNPACK(17) UNPACK(18) UNPACK(19) UNPACK(20) UNPACK(21) UNPACK(22) UNPACK(23) UNPACK(24)
    default:
        memset(out, 0, (size_t)n_groups * 8 * sizeof *out);
    }
#undef UNPACK
}

typedef struct {
    Runs runs;
    int64_t wanted, at, end; /* numbers still to be unpacked, and those in `dense` that are not yet taken */
    uint32_t size;           /* every number is below it */
    uint32_t dense[DENSE + 8];
} Indices;

/* Have eight indices or more ready, or all that are left; false where one is out of range or the bytes end. */
static bool refill(Indices *indices)
{
    int64_t kept = indices->end - indices->at;
    if (kept >= 8 || !indices->wanted)
        return true;
    memmove(indices->dense, indices->dense + indices->at, (size_t)kept * sizeof *indices->dense);
    indices->at = 0;
    int64_t end = kept;
    Runs *runs = &indices->runs;
    while (indices->wanted) {
        if (!runs->left && !next_run(runs))
            return false;
        int64_t room = DENSE - end, count = runs->left < room ? runs->left : room;
        if (runs->packed)
            count &= ~(int64_t)7;
        if (!count)
            break;
        uint32_t *out = indices->dense + end;
        int32_t room_below = 0; /* negative where an index is out of range: all have at most 24 bits */
        if (runs->packed) {
            unpack(runs->packed, runs->bytes.end, runs->width, count >> 3, out);
            runs->packed += (count >> 3) * runs->width;
        } else
            for (int64_t place = 0; place < count; place++)
                out[place] = runs->number;
        runs->left -= count;
        int64_t beyond = count > indices->wanted ? count - indices->wanted : 0;
        if (beyond && (runs->left || !is_filling(runs, beyond)))
            return false;
        count -= beyond;
        for (int64_t place = 0; place < count; place++)
            room_below |= (int32_t)indices->size - 1 - (int32_t)out[place];
        if (room_below < 0)
            return false;
        indices->wanted -= count;
        end += count;
    }
    indices->end = end;
    return true;
}

/* A page in some bytes that are not compressed: levels, of rows that may be null, and values. */
typedef struct {
    Bytes levels, values;
    int64_t n_rows, n_present;
} Page;

/* Count the values that are there: levels are runs of one bit. */
static bool count_present(Page *page)
{
    int64_t wanted = page->n_rows;
    Runs runs = {.bytes = page->levels, .width = 1};
    page->n_present = 0;
    while (wanted) {
        if (!next_run(&runs))
            return false;
        int64_t here = runs.left < wanted ? runs.left : wanted;
        if (runs.packed) {
            for (int64_t byte = 0; byte < here >> 3; byte++)
                page->n_present += __builtin_popcount(runs.packed[byte]);
            if (here & 7)
                page->n_present += __builtin_popcount(runs.packed[here >> 3] & ((1u << (here & 7)) - 1));
        } else
            page->n_present += runs.number ? here : 0;
        if (!is_filling(&runs, runs.left - here))
            return false;
        wanted -= here;
    }
    return runs.bytes.at == runs.bytes.end;
}

static bool open_page(const Argument *data, const int64_t *slots, bool is_optional, Page *page)
{
    int64_t size = slots[UNCOMPRESSED], n_levels = slots[LEVELS];
    if (size < 0 || slots[BEGIN] < 0 || slots[BEGIN] > data->rows - size || !within(slots[N_VALUES], INT32_MAX))
        return false;
    Bytes bytes = {(const uint8_t *)data->data + slots[BEGIN], (const uint8_t *)data->data + slots[BEGIN] + size};
    if (n_levels < 0 && is_optional) { /* the first version: their length stands before them */
        uint32_t length;
        if (size < (int64_t)sizeof length)
            return false;
        memcpy(&length, bytes.at, sizeof length);
        bytes.at += sizeof length;
        n_levels = length;
    }
    n_levels = n_levels < 0 ? 0 : n_levels;
    if (n_levels > bytes.end - bytes.at || (n_levels && !is_optional))
        return false;
    *page = (Page){.levels = {bytes.at, bytes.at + n_levels},
                   .values = {bytes.at + n_levels, bytes.end},
                   .n_rows = slots[N_VALUES],
                   .n_present = slots[N_VALUES]};
    return (!is_optional || count_present(page)) &&
           (slots[N_NULLS] < 0 || slots[N_NULLS] == page->n_rows - page->n_present);
}

/* Join the values of pages, each of so many bytes, or of texts where that is 0; say how many they are, and how many
   bytes. */
static bool join_values(const Argument *a)
{
    const int64_t *slots = a[1].data;
    int64_t width = a[3].integer, *out = a[5].data, n_present = 0, end = 0;
    if (a[1].columns != N_COLUMNS || width < 0 || width > 8 || (!width && a[1].rows != 1) || a[5].rows < 2)
        return false;
    for (int64_t at = 0; at < a[1].rows; at++, slots += N_COLUMNS) {
        Page page;
        if (!open_page(&a[0], slots, a[2].integer, &page))
            return false;
        int64_t size = page.values.end - page.values.at;
        if (size > a[4].rows - end || (width && size != page.n_present * width))
            return false;
        memcpy((uint8_t *)a[4].data + end, page.values.at, (size_t)size);
        end += size;
        n_present += page.n_present;
    }
    out[0] = n_present;
    out[1] = end;
    return true;
}

/* Codes of present values, one after the other: of entries of a dictionary, by index, or of the values themselves. */
typedef struct {
    const int32_t *codes;
    Indices *indices; /* NULL where the codes are of values: there are `size`, `at` are taken */
    int64_t at, size;
} Source;

static inline bool take(Source *source, int64_t count, int32_t *restrict out)
{
    const int32_t *restrict codes = source->codes;
    Indices *indices = source->indices;
    if (!indices) {
        if (count > source->size - source->at)
            return false;
        memcpy(out, codes + source->at, (size_t)count * sizeof *out);
        source->at += count;
        return true;
    }
    while (count) {
        if (!refill(indices) || indices->at == indices->end)
            return false;
        int64_t here = indices->end - indices->at < count ? indices->end - indices->at : count;
        const uint32_t *restrict dense = indices->dense + indices->at;
        for (int64_t place = 0; place < here; place++)
            out[place] = codes[dense[place]];
        indices->at += here;
        count -= here;
        out += here;
    }
    return true;
}

/* Take those of up to eight rows, a bit a row. What is read beyond those that are present is not used. */
static inline bool take_bits(Source *source, unsigned bits, int count, int32_t missing, int32_t *restrict out)
{
    int32_t codes[9] = {0};
    int at = 0;
    bits &= (1u << count) - 1;
    if (!take(source, __builtin_popcount(bits), codes))
        return false;
    for (int place = 0; place < count; place++) {
        int bit = bits >> place & 1;
        out[place] = bit ? codes[at] : missing;
        at += bit;
    }
    return true;
}

/* The same of eight rows, where eight indices are ready. */
static inline void take_eight(Source *source, unsigned bits, int32_t missing, int32_t *restrict out)
{
    const int32_t *restrict codes = source->codes;
    const uint32_t *restrict dense = source->indices->dense + source->indices->at;
    int at = 0;
    for (int place = 0; place < 8; place++) {
        int bit = bits >> place & 1;
        int32_t code = codes[dense[at]];
        out[place] = bit ? code : missing;
        at += bit;
    }
    source->indices->at += at;
}

/* Write a code for every row; without levels all values are there. */
static bool spread(Source *source, Bytes levels, int32_t missing, int64_t left, int32_t *out)
{
    if (levels.at == levels.end)
        return take(source, left, out);
    Runs runs = {.bytes = levels, .width = 1};
    for (int64_t here; left; out += here, left -= here) {
        if (!next_run(&runs))
            return false;
        here = runs.left < left ? runs.left : left;
        if (!runs.packed && runs.number) {
            if (!take(source, here, out))
                return false;
        } else if (!runs.packed)
            for (int64_t row = 0; row < here; row++)
                out[row] = missing;
        else
            for (int64_t row = 0; row < here; row += 8) {
                Indices *indices = source->indices;
                unsigned bits = runs.packed[row >> 3];
                if (indices && here - row >= 8 && indices->end - indices->at >= 8)
                    take_eight(source, bits, missing, out + row);
                else if (!take_bits(source, bits, here - row < 8 ? (int)(here - row) : 8, missing, out + row))
                    return false;
            }
    }
    return true;
}

static bool page_codes_of(const Page *page, const int32_t *codes, int64_t n_entries, int32_t *out)
{
    Bytes values = page->values;
    if (!page->n_present && values.at == values.end) { /* no value, and not even the width of one */
        Source nothing = {.codes = codes};
        return spread(&nothing, page->levels, codes[n_entries], page->n_rows, out);
    }
    if (values.at == values.end || *values.at > MOST_BITS)
        return false;
    Indices indices = {.runs = {.bytes = {values.at + 1, values.end}, .width = *values.at},
                       .wanted = page->n_present,
                       .size = (uint32_t)n_entries};
    Source source = {.codes = codes, .indices = &indices};
    return spread(&source, page->levels, codes[n_entries], page->n_rows, out) && !indices.wanted &&
           indices.at == indices.end && indices.runs.bytes.at == indices.runs.bytes.end && !indices.runs.left;
}

/* Codes of the rows of pages of indices into a dictionary: the pages, whether rows may be null, the codes of
   the entries and last that of a null, and the codes of the rows. */
static bool page_codes(const Argument *a)
{
    const int64_t *slots = a[1].data;
    const int32_t *codes = a[3].data;
    int32_t *out = a[4].data;
    int64_t n_entries = a[3].rows - 1, left = a[4].rows;
    if (a[1].columns != N_COLUMNS || n_entries < 0 || n_entries > INT32_MAX)
        return false;
    for (int64_t at = 0; at < a[1].rows; at++, slots += N_COLUMNS) {
        Page page;
        if (!open_page(&a[0], slots, a[2].integer, &page) || page.n_rows > left ||
            !page_codes_of(&page, codes, n_entries, out))
            return false;
        out += page.n_rows;
        left -= page.n_rows;
    }
    return !left;
}

/* Codes of the rows of pages from those of the values that are there: the pages, whether rows may be null, the
   codes of all values, that of a null, and the codes of the rows. */
static bool value_codes(const Argument *a)
{
    const int64_t *slots = a[1].data;
    Source source = {.codes = a[3].data, .size = a[3].rows};
    int32_t *out = a[5].data;
    int64_t left = a[5].rows;
    if (a[1].columns != N_COLUMNS)
        return false;
    for (int64_t at = 0; at < a[1].rows; at++, slots += N_COLUMNS) {
        Page page;
        if (!open_page(&a[0], slots, a[2].integer, &page) || page.n_rows > left ||
            !spread(&source, page.levels, (int32_t)a[4].integer, page.n_rows, out))
            return false;
        out += page.n_rows;
        left -= page.n_rows;
    }
    return !left && source.at == source.size;
}

/* Texts that stand one after the other, each after its length, as Arrow has them. */
static bool plain_texts(const Argument *a)
{
    Bytes bytes = {a[0].data, (const uint8_t *)a[0].data + a[0].rows};
    int32_t *offsets = a[1].data;
    uint8_t *out = a[2].data;
    int64_t end = 0;
    if (a[1].rows < 1 || a[0].rows > INT32_MAX)
        return false;
    offsets[0] = 0;
    for (int64_t text = 1; text < a[1].rows; text++) {
        uint32_t length;
        if (bytes.end - bytes.at < (int64_t)sizeof length)
            return false;
        memcpy(&length, bytes.at, sizeof length);
        bytes.at += sizeof length;
        if (length > bytes.end - bytes.at || length > a[2].rows - end)
            return false;
        memcpy(out + end, bytes.at, length);
        bytes.at += length;
        offsets[text] = (int32_t)(end += length);
    }
    return bytes.at == bytes.end;
}

const Kernel PAGE_KERNELS[] = {
    {"join_values", "uint8[1] int64[2] boolean int64 uint8[1]! int64[1]!", join_values},
    {"page_codes", "uint8[1] int64[2] boolean int32[1] int32[1]!", page_codes},
    {"value_codes", "uint8[1] int64[2] boolean int32[1] int32 int32[1]!", value_codes},
    {"plain_texts", "uint8[1] int32[1]! uint8[1]!", plain_texts},
    {0},
};
