/* Codes and sums of one block of rows: what kernels.py says, statement by statement. */

#include "call.h"

#define NOTHING INT32_MIN /* the lattice value of a row that does not enter a sum */

static inline uint32_t least(uint32_t first, uint32_t second) { return first < second ? first : second; }

ON_VECTORS static bool gather(const Argument *a)
{
    const int32_t *indices = a[0].data, *codes = a[1].data;
    int32_t *out = a[2].data;
    if (a[2].rows < a[0].rows || a[1].rows < 1)
        return false;
    uint32_t last = (uint32_t)(a[1].rows - 1);
    for (int64_t row = 0; row < a[0].rows; row++)
        out[row] = codes[least((uint32_t)indices[row], last)];
    return true;
}

ON_VECTORS static bool look_up(const Argument *a)
{
    const int64_t *values = a[0].data;
    const int32_t *codes = a[2].data;
    int32_t missing = (int32_t)a[3].integer, *out = a[4].data;
    uint64_t first = (uint64_t)a[1].integer, size = (uint64_t)a[2].rows;
    if (a[4].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        uint64_t index = (uint64_t)values[row] - first; /* wraps: one comparison checks both ends */
        int32_t code = index < size ? codes[index] : -1;
        out[row] = code >= 0 ? code : missing;
    }
    return true;
}

static bool search(const Argument *a)
{
    const int64_t *values = a[0].data, *keys = a[1].data;
    const int32_t *codes = a[2].data;
    int32_t missing = (int32_t)a[3].integer, *out = a[4].data;
    if (a[4].rows < a[0].rows || a[2].rows < a[1].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        int64_t value = values[row], low = 0, high = a[1].rows;
        while (low < high) {
            int64_t middle = (low + high) >> 1;
            if (keys[middle] < value)
                low = middle + 1;
            else
                high = middle;
        }
        out[row] = low < a[1].rows && keys[low] == value ? codes[low] : missing;
    }
    return true;
}

static bool fill_nulls(const Argument *a)
{
    int32_t *out = a[0].data, missing = (int32_t)a[3].integer;
    const uint8_t *validity = a[1].data;
    int64_t n_rows = a[0].rows, offset = a[2].integer;
    if (n_rows && (offset < 0 || offset > INT64_MAX - n_rows - 7 || a[1].rows < (offset + n_rows + 7) >> 3))
        return false;
    int64_t whole = offset & 7 ? 0 : n_rows & ~(int64_t)7;
    for (int64_t start = 0; start < whole; start += 8) {
        uint8_t byte = validity[(offset + start) >> 3];
        if (byte != 0xFF) /* most bytes have no null */
            for (int step = 0; step < 8; step++)
                if (!(byte >> step & 1))
                    out[start + step] = missing;
    }
    for (int64_t row = whole; row < n_rows; row++) {
        int64_t bit = offset + row;
        if (!(validity[bit >> 3] >> (bit & 7) & 1))
            out[row] = missing;
    }
    return true;
}

ON_VECTORS static bool combine_codes(const Argument *a)
{
    int32_t *cells = a[0].data;
    const int32_t *codes = a[1].data;
    int64_t size = a[2].integer;
    if (a[1].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        int32_t cell = cells[row], code = codes[row];
        bool is_known = (cell >= 0) & (code >= 0) & (code < size);
        cells[row] = is_known ? (int32_t)(cell * size + code) : -1;
    }
    return true;
}

ON_VECTORS static bool keep_coded(const Argument *a)
{
    int32_t *cells = a[0].data;
    const int32_t *codes = a[1].data;
    if (a[1].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++)
        cells[row] = codes[row] >= 0 ? cells[row] : -1;
    return true;
}

ON_VECTORS static bool count_codes(const Argument *a)
{
    const int32_t *cells = a[0].data;
    int32_t *codes = a[1].data;
    int64_t *counts = a[2].data;
    if (a[1].rows < a[0].rows || a[2].rows < 1 || a[2].columns < 1 || a[2].rows > UINT32_MAX / a[2].columns)
        return false;
    uint32_t no_cell = (uint32_t)(a[2].rows - 1), n_codes = (uint32_t)a[2].columns;
    /* Two loops: the first has no branch and no scattered access, so it runs on vectors. */
    for (int64_t row = 0; row < a[0].rows; row++) {
        uint32_t cell = (uint32_t)cells[row], code = (uint32_t)codes[row];
        bool is_known = (cell < no_cell) & (code < n_codes);
        codes[row] = (int32_t)(is_known ? cell * n_codes + code : no_cell * n_codes);
    }
    for (int64_t row = 0; row < a[0].rows; row++)
        counts[(uint32_t)codes[row]]++;
    return true;
}

ON_VECTORS static bool keep_sides_at_ends(const Argument *a)
{
    const int32_t *lattice = a[0].data, *sides = a[1].data;
    int32_t lowest = (int32_t)a[2].integer, highest = (int32_t)a[3].integer, *out = a[4].data;
    if (a[0].rows < a[1].rows || a[4].rows < a[1].rows)
        return false;
    for (int64_t row = 0; row < a[1].rows; row++)
        out[row] = lattice[row] == (sides[row] == 0 ? lowest : highest) ? sides[row] : -1;
    return true;
}

static bool count_transitions(const Argument *a)
{
    const int32_t *rows = a[0].data, *units = a[1].data, *cells = a[2].data, *codes = a[3].data;
    int64_t most = a[4].integer, n_codes = a[5].integer, *table = a[6].data, steps = 0;
    if (a[1].rows != a[2].rows || a[1].rows != a[3].rows || a[6].rows < 1 || n_codes < 1)
        return false;
    uint32_t no_cell = (uint32_t)(a[6].rows - 1);
    for (int64_t position = 1; position < a[0].rows; position++) {
        int32_t before = rows[position - 1], row = rows[position];
        if (!within(before, a[1].rows) || !within(row, a[1].rows))
            return false;
        steps = units[before] == units[row] ? steps + 1 : 0;
        if (0 < steps && steps <= most && cells[before] == cells[row]) {
            int64_t column = (int64_t)codes[before] * n_codes + codes[row];
            if (!within(column, a[6].columns))
                return false;
            table[least((uint32_t)cells[row], no_cell) * a[6].columns + column]++;
        }
    }
    return true;
}

static bool is_complete(const int32_t *lattice, int64_t row, int64_t n_rows, int64_t n_columns)
{
    for (int64_t column = 0; column < n_columns; column++)
        if (lattice[column * n_rows + row] == NOTHING)
            return false;
    return true;
}

static bool add_moments(const Argument *a)
{
    const int32_t *cells = a[0].data, *lattice = a[1].data;
    int64_t *table = a[2].data, n_rows = a[0].rows, n_columns = a[1].rows, width = a[2].columns;
    if (a[1].columns != n_rows || a[2].rows < 1 || n_columns > INT16_MAX ||
        width < (n_columns + 1) * (n_columns + 2) / 2)
        return false;
    uint32_t no_cell = (uint32_t)(a[2].rows - 1);
    for (int64_t row = 0; row < n_rows; row++) {
        uint32_t cell = (uint32_t)cells[row];
        if (cell >= no_cell || !is_complete(lattice, row, n_rows, n_columns))
            continue;
        int64_t *sums = table + cell * width, product = n_columns + 1;
        sums[0]++;
        for (int64_t first = 0; first < n_columns; first++) {
            int64_t value = lattice[first * n_rows + row];
            sums[1 + first] += value;
            for (int64_t second = first; second < n_columns; second++)
                sums[product++] += value * lattice[second * n_rows + row];
        }
    }
    return true;
}

static bool gather_by_cell(const Argument *a)
{
    const int32_t *cells = a[0].data, *lattice = a[1].data;
    int64_t *starts = a[2].data, n_rows = a[0].rows, n_columns = a[1].rows, n_cells = a[2].rows - 1, end = 0;
    double *out = a[3].data;
    if (a[1].columns != n_rows || n_cells < 0 || a[3].columns < n_columns + 1)
        return false;
    for (int64_t cell = 0; cell <= n_cells; cell++)
        starts[cell] = 0;
    for (int64_t row = 0; row < n_rows; row++)
        if ((uint32_t)cells[row] < n_cells && is_complete(lattice, row, n_rows, n_columns))
            starts[cells[row]]++;
    for (int64_t cell = 0; cell <= n_cells; cell++)
        starts[cell] = end += starts[cell];
    if (a[3].rows < end)
        return false;
    /* Filled from the back: every start ends up where its cell begins. */
    for (int64_t row = n_rows - 1; row >= 0; row--) {
        if ((uint32_t)cells[row] >= n_cells || !is_complete(lattice, row, n_rows, n_columns))
            continue;
        double *line = out + --starts[cells[row]] * a[3].columns;
        line[0] = 1.0;
        for (int64_t column = 0; column < n_columns; column++)
            line[1 + column] = lattice[column * n_rows + row];
    }
    return true;
}

static bool add_powers(const Argument *a)
{
    const int32_t *cells = a[0].data, *lattice = a[1].data;
    int64_t *table = a[2].data, width = a[2].columns;
    if (a[1].rows < a[0].rows || a[2].rows < 1 || width < 2)
        return false;
    uint32_t no_cell = (uint32_t)(a[2].rows - 1);
    for (int64_t row = 0; row < a[0].rows; row++) {
        bool enters = lattice[row] != NOTHING;
        int64_t value = enters ? lattice[row] : 0;
        int64_t *sums = table + (enters ? least((uint32_t)cells[row], no_cell) : no_cell) * width;
        sums[0]++;
        sums[1] += value;
        if (width == 3)
            sums[2] += value * value;
    }
    return true;
}

static bool first_rows(const Argument *a)
{
    const int64_t *ranked = a[0].data;
    const int32_t *units = a[1].data;
    const uint8_t *enters = a[2].data;
    int64_t *firsts = a[3].data;
    if (a[1].rows != a[2].rows)
        return false;
    for (int64_t position = 0; position < a[0].rows; position++) {
        int64_t row = ranked[position];
        if (!within(row, a[1].rows) || !within(units[row], a[3].rows))
            return false;
        if (enters[row] && firsts[units[row]] < 0)
            firsts[units[row]] = row;
    }
    return true;
}

static bool add_by_unit(const Argument *a)
{
    const int32_t *units = a[0].data, *cells = a[1].data, *lattice = a[2].data;
    const int64_t *firsts = a[3].data;
    int64_t *totals = a[4].data, *counts = a[5].data;
    if (a[1].rows != a[0].rows || a[2].rows != a[0].rows || a[4].rows < a[3].rows || a[5].rows < a[3].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        int64_t unit = units[row];
        if (!within(unit, a[3].rows))
            return false;
        if (lattice[row] == NOTHING)
            continue;
        if (!within(firsts[unit], a[1].rows))
            return false;
        if (cells[row] == cells[firsts[unit]]) {
            totals[unit] += lattice[row];
            counts[unit]++;
        }
    }
    return true;
}

const Kernel CHUNK_KERNELS[] = {
    {"gather", "int32[1] int32[1] int32[1]!", gather},
    {"look_up", "int64[1] int64 int32[1] int32 int32[1]!", look_up},
    {"search", "int64[1] int64[1] int32[1] int32 int32[1]!", search},
    {"fill_nulls", "int32[1]! uint8[1] int64 int32", fill_nulls},
    {"combine_codes", "int32[1]! int32[1] int32", combine_codes},
    {"keep_coded", "int32[1]! int32[1]", keep_coded},
    {"count_codes", "int32[1] int32[1]! int64[2]!", count_codes},
    {"keep_sides_at_ends", "int32[1] int32[1] int32 int32 int32[1]!", keep_sides_at_ends},
    {"count_transitions", "int32[1] int32[1] int32[1] int32[1] int64 int64 int64[2]!", count_transitions},
    {"add_moments", "int32[1] int32[2] int64[2]!", add_moments},
    {"gather_by_cell", "int32[1] int32[2] int64[1]! float64[2]!", gather_by_cell},
    {"add_powers", "int32[1] int32[1] int64[2]!", add_powers},
    {"first_rows", "int64[1] int32[1] boolean[1] int64[1]!", first_rows},
    {"add_by_unit", "int32[1] int32[1] int32[1] int64[1] int64[1]! int64[1]!", add_by_unit},
    {0},
};
