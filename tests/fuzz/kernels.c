/* One input of a fuzzer: a call of a kernel with any arguments, or a column of pages read to its end.

   Two bytes say which: a table of kernels and a place in it, or COLUMN and what the footer says of the column.
   Every array has its very size, so that a sanitiser sees each access beyond it. What is accepted of a column
   is decoded once more, bit by bit. There is no Python: module.c hands the kernels these arguments and nothing
   else. */

#include <stdio.h>
#include <stdlib.h>

#include "pages.h"
#include "signature.h"

static const Kernel *const TABLES[] = {CHUNK_KERNELS, VALUE_KERNELS, UNIT_KERNELS, HEADER_KERNELS, PAGE_KERNELS};
enum { COLUMN = sizeof TABLES / sizeof *TABLES };

enum { MOST_ROWS = 150000, MOST_GIVEN = 1 << 16, MOST_BYTES = 1 << 21 };
enum { MOST_PAGES = 8, MOST_PAGE_ROWS = 1 << 17, MOST_PAGE_BYTES = 1 << 16 };

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

static void *allocated(int64_t size)
{
    void *memory = calloc(1, (size_t)size);
    require(memory || !size, "there is memory");
    return memory;
}

/* The next so many bytes as a number; zeros stand after the last one. */
static uint64_t next(Bytes *input, int size)
{
    uint64_t number = 0;
    for (int byte = 0; byte < size && input->at < input->end; byte++)
        number |= (uint64_t)*input->at++ << 8 * byte;
    return number;
}

/* A number: a byte with a sign, or eight bytes after 0x80. */
static void next_number(Bytes *input, const Parameter *of, Argument *argument)
{
    uint64_t bits = next(input, 1);
    bool is_short = bits != 0x80;
    bits = is_short ? (uint64_t)(int64_t)(int8_t)bits : next(input, 8);
    if (of->type == 'd' && is_short)
        argument->real = (double)(int64_t)bits;
    else if (of->type == 'd')
        memcpy(&argument->real, &bits, sizeof bits);
    else if (of->type == 'Q')
        argument->natural = bits;
    else if (of->type == '?')
        argument->integer = bits & 1;
    else
        argument->integer = of->type == 'i' ? (int32_t)bits : (int64_t)bits;
}

static void put(void *array, const Parameter *of, int64_t at, int64_t value)
{
    if (of->type == 'd')
        ((double *)array)[at] = (double)value;
    else
        memcpy((uint8_t *)array + at * of->size, &value, (size_t)of->size);
}

/* An array: rows, perhaps columns, and how it is filled: by its bytes, a byte a value, or from one byte on. */
static void next_array(Bytes *input, const Parameter *of, Argument *argument)
{
    enum { BY_BYTES, BYTE_EACH, CONSTANT, COUNTING };
    int64_t rows = (int64_t)next(input, 1);
    if (rows >= 0xFE)
        rows = (int64_t)next(input, rows == 0xFE ? 2 : 4) % (MOST_ROWS + 1);
    int64_t columns = of->dimensions == 2 ? (int64_t)next(input, 1) : 1;
    int fill = (int)next(input, 1) & 3;
    int64_t most = (fill <= BYTE_EACH ? MOST_GIVEN : MOST_BYTES) / of->size;
    if (columns && rows > most / columns)
        rows = most / columns;
    int64_t n_values = rows * columns, value = fill >= CONSTANT ? (int8_t)next(input, 1) : 0;
    *argument = (Argument){.data = allocated(n_values * of->size), .rows = rows, .columns = columns};
    if (fill == BY_BYTES) {
        int64_t size = n_values * of->size, left = input->end - input->at;
        size = size < left ? size : left;
        memcpy(argument->data, input->at, (size_t)size);
        input->at += size;
    } else
        for (int64_t at = 0; at < n_values; at++, value += fill == COUNTING)
            put(argument->data, of, at, fill == BYTE_EACH ? (int8_t)next(input, 1) : value);
}

static void call_kernel(const Kernel *kernel, Bytes input)
{
    Parameter parameters[MOST_ARGUMENTS] = {{0}};
    Argument arguments[MOST_ARGUMENTS] = {{0}};
    int n_parameters = read_signature(kernel->signature, parameters);
    require(n_parameters > 0, "a signature can be read");
    for (int at = 0; at < n_parameters; at++)
        if (parameters[at].dimensions)
            next_array(&input, &parameters[at], &arguments[at]);
        else
            next_number(&input, &parameters[at], &arguments[at]);
    kernel->function(arguments);
    for (int at = 0; at < n_parameters; at++)
        free(arguments[at].data);
}

static bool call(const char *name, const Argument *arguments)
{
    for (size_t table = 0; table < COLUMN; table++)
        for (const Kernel *kernel = TABLES[table]; kernel->name; kernel++)
            if (!strcmp(kernel->name, name))
                return kernel->function(arguments);
    require(false, "there is such a kernel");
    return false;
}

/* A column, as paged_columns.py reads it: what the footer says, and the codes of its dictionary. */

enum { TEXT = 0 };
enum { MISSING = -7, NOT_WRITTEN = -99 };

typedef struct {
    int64_t codec, is_optional, width; /* bytes of a value, or TEXT */
    Argument entries;                  /* NULL before the dictionary */
} Column;

/* So many numbers of some bits, a bit after the other; the rest of the bytes, or NULL where there are fewer. */
static const uint8_t *decode(const uint8_t *at, const uint8_t *end, int width, int64_t count, uint32_t *out)
{
    while (count) {
        uint64_t header = 0;
        int shift = 0;
        do {
            if (at == end || shift > 28)
                return NULL;
            header |= (uint64_t)(*at & 0x7F) << shift;
            shift += 7;
        } while (*at++ & 0x80);
        bool is_packed = header & 1;
        int64_t here = (int64_t)(header >> 1) * (is_packed ? 8 : 1), bit = 0;
        int64_t size = is_packed ? (int64_t)(header >> 1) * width : (width + 7) / 8;
        if (size > end - at)
            return NULL;
        for (int64_t number = 0; number < here && count; number++, count--) {
            *out = 0;
            bit = is_packed ? bit : 0;
            for (int place = 0; place < width; place++, bit++)
                *out |= (uint32_t)(at[bit >> 3] >> (bit & 7) & 1) << place;
            out++;
        }
        at += size;
    }
    return at;
}

/* Check the codes of a page against its bits: those of its indices, or from `first` on of values that are there;
   return how many are there. */
static int64_t check_page(const Column *column, const uint8_t *data, const int64_t *slots, const int32_t *codes,
                          int64_t first, bool is_coded)
{
    int64_t n_rows = slots[N_VALUES], n_levels = slots[LEVELS], n_present = 0, n_taken = 0;
    const uint8_t *at = data + slots[BEGIN], *end = at + slots[UNCOMPRESSED];
    uint32_t *present = allocated(n_rows * 4), *indices = allocated(n_rows * 4);
    if (column->is_optional) {
        if (n_levels < 0) {
            n_levels = at[0] | at[1] << 8 | at[2] << 16 | (int64_t)at[3] << 24;
            at += 4;
        }
        require(decode(at, at + n_levels, 1, n_rows, present) == at + n_levels, "levels fill their bytes");
        at += n_levels;
    }
    for (int64_t row = 0; row < n_rows; row++)
        n_present += present[row] |= !column->is_optional;
    if (is_coded && n_present)
        require(decode(at + 1, end, *at, n_present, indices) == end, "indices fill their page");
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t place = is_coded && present[row] ? indices[n_taken] : first + n_taken;
        require(!is_coded || !present[row] || place < column->entries.rows - 1, "an index is in the dictionary");
        require(codes[row] == (present[row] ? (int32_t)place : MISSING), "codes are those of the bits");
        n_taken += present[row];
    }
    free(present);
    free(indices);
    return n_taken;
}

/* Codes 0, 1, ... of values that lie one after the other, and last that of a null; false where they are others. */
static bool plain(const Column *column, Argument values, int64_t n_values, Argument *codes)
{
    bool is_right = column->width ? values.rows == n_values * column->width : values.rows >= 4 * n_values;
    if (!is_right)
        return false;
    if (column->width == TEXT) {
        Argument offsets = {.data = allocated(4 * (n_values + 1)), .rows = n_values + 1, .columns = 1};
        Argument texts = {.data = allocated(values.rows), .rows = values.rows, .columns = 1};
        is_right = call("plain_texts", (Argument[]){values, offsets, texts});
        const int32_t *ends = offsets.data;
        for (int64_t text = 0; is_right && text < n_values; text++)
            require(0 <= ends[text] && ends[text] <= ends[text + 1], "texts begin where others end");
        require(!is_right || ends[n_values] <= texts.rows, "texts are there");
        free(offsets.data);
        free(texts.data);
    }
    if (is_right) {
        *codes = (Argument){.data = allocated(4 * (n_values + 1)), .rows = n_values + 1, .columns = 1};
        for (int64_t value = 0; value < n_values; value++)
            ((int32_t *)codes->data)[value] = (int32_t)value;
        ((int32_t *)codes->data)[n_values] = MISSING;
    }
    return is_right;
}

/* Read data pages of one kind and encoding, which have so many rows. */
static bool read_data(const Column *column, Argument data, Argument pages, int64_t n_rows)
{
    const int64_t *slots = pages.data;
    bool is_coded = slots[ENCODING] != 0, fits;
    Argument codes = {.data = allocated(4 * n_rows), .rows = n_rows, .columns = 1};
    Argument is_optional = {.integer = column->is_optional}, missing = {.integer = MISSING};
    for (int64_t row = 0; row < n_rows; row++)
        ((int32_t *)codes.data)[row] = NOT_WRITTEN;
    if (is_coded) {
        Argument arguments[] = {data, pages, is_optional, column->entries, codes};
        fits = column->entries.data && call("page_codes", arguments);
    } else {
        int64_t counts[2] = {-1, -1};
        Argument joined = {.data = allocated(data.rows), .rows = data.rows, .columns = 1}, values = {0};
        Argument width = {.integer = column->width}, counted = {.data = counts, .rows = 2, .columns = 1};
        fits = call("join_values", (Argument[]){data, pages, is_optional, width, joined, counted});
        require(!fits || (0 <= counts[0] && counts[0] <= n_rows), "no more values than rows");
        require(!fits || (0 <= counts[1] && counts[1] <= joined.rows), "no more bytes than are given");
        joined.rows = counts[1];
        fits = fits && plain(column, joined, counts[0], &values);
        values.rows = counts[0]; /* without that of a null */
        fits = fits && call("value_codes", (Argument[]){data, pages, is_optional, values, missing, codes});
        free(joined.data);
        free(values.data);
    }
    int64_t taken = 0, row = 0;
    for (int64_t page = 0; fits && page < pages.rows; page++, slots += N_COLUMNS) {
        taken += check_page(column, data.data, slots, (int32_t *)codes.data + row, taken, is_coded);
        row += slots[N_VALUES];
    }
    require(!fits || row == n_rows, "every row has a code");
    free(codes.data);
    return fits;
}

/* Read pages that are decompressed together. Arrow decompresses; here, what is compressed is repeated. */
static bool read_pages(Column *column, Argument window, Argument pages, int64_t n_values, int64_t size)
{
    int64_t *slots = pages.data;
    Argument data = window;
    if (column->codec) {
        bool is_second = slots[KIND] == 3;
        if (!is_second && !call("pack_pages", (Argument[]){window, pages}))
            require(false, "listed pages can be moved");
        const uint8_t *from = (uint8_t *)window.data + (is_second ? slots[BEGIN] : 0);
        int64_t compressed = slots[COMPRESSED] > 0 ? slots[COMPRESSED] : 1;
        data = (Argument){.data = allocated(size), .rows = size, .columns = 1};
        for (int64_t byte = 0; byte < size && slots[COMPRESSED]; byte++)
            ((uint8_t *)data.data)[byte] = from[byte % compressed];
        if (is_second)
            slots[BEGIN] = 0;
    }
    bool fits = true;
    if (slots[KIND] != 2)
        fits = read_data(column, data, pages, n_values);
    else if (column->entries.data)
        fits = false;
    else {
        Argument values = {.data = (uint8_t *)data.data + slots[BEGIN], .rows = size, .columns = 1};
        fits = plain(column, values, n_values, &column->entries);
    }
    if (column->codec)
        free(data.data);
    return fits;
}

static void read_column(int kind, Bytes input)
{
    static const int WIDTHS[] = {TEXT, 4, 8, TEXT};
    Column column = {.codec = (kind & 3) % 3, .is_optional = kind >> 2 & 1, .width = WIDTHS[kind >> 3 & 3]};
    int64_t begin = 0, size = input.end - input.at, n_pages = 1;
    for (bool fits = true; fits && n_pages && begin < size;) {
        Argument window = {.data = allocated(size - begin), .rows = size - begin, .columns = 1};
        Argument table = {.rows = 1 + MOST_PAGES, .columns = N_COLUMNS};
        table.data = allocated(table.rows * N_COLUMNS * 8);
        memcpy(window.data, input.at + begin, (size_t)(size - begin));
        fits = call("page_headers", (Argument[]){window, {.integer = column.codec}, table});
        const int64_t *counts = table.data;
        n_pages = fits ? counts[0] : 0;
        begin += fits ? counts[1] : 0;
        require(0 <= n_pages && n_pages <= MOST_PAGES && begin <= size, "pages are within the bytes");
        for (int64_t first = 1, end; fits && first <= n_pages; first = end) {
            int64_t *slots = (int64_t *)table.data + first * N_COLUMNS, n_values = 0, n_bytes = 0;
            bool is_alone = column.codec == 1 || slots[KIND] || (!slots[ENCODING] && column.width == TEXT);
            for (end = first; fits && end <= n_pages && (end == first || !is_alone); end++) {
                const int64_t *next_slots = (int64_t *)table.data + end * N_COLUMNS;
                if (memcmp(next_slots, slots, 2 * sizeof *slots))
                    break;
                n_values += next_slots[N_VALUES];
                n_bytes += next_slots[UNCOMPRESSED];
                fits = n_values <= MOST_PAGE_ROWS && n_bytes <= MOST_PAGE_BYTES;
            }
            Argument pages = {.data = slots, .rows = end - first, .columns = N_COLUMNS};
            fits = fits && read_pages(&column, window, pages, n_values, n_bytes);
        }
        free(window.data);
        free(table.data);
    }
    free(column.entries.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    Bytes input = {data + 2, data + size};
    int table = data[0] % 8, n_kernels = 0;
    if (table >= COLUMN)
        read_column(data[1], input);
    else {
        while (TABLES[table][n_kernels].name)
            n_kernels++;
        call_kernel(&TABLES[table][data[1] % n_kernels], input);
    }
    return 0;
}
