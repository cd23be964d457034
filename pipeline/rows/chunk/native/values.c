/* Numbers onto lattices, and times into a calendar: what clipping.py and calendar_parts.py say.

   Built without contraction: a fused multiplication would change last digits. */

#include <float.h>
#include <math.h>

#include "call.h"

#if FLT_EVAL_METHOD != 0
#error "doubles must be computed in 64 bits: without this module, numba compiles the loops"
#endif

#define NOTHING INT32_MIN

/* The logarithm and the exponential of fdlibm, with the constants of lattice.py. */

static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
static const double LOG_ODD[] = {2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01};
static const double LOG_EVEN[] = {3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01};
static const double LOG_FIRST = 6.666666666666735130e-01;
static const double EXP[] = {1.66666666666666019037e-01, -2.77777777770155933842e-03,
                             6.61375632143793436117e-05, -1.65339022054652515390e-06,
                             4.13813679705723846039e-08};
static const double SMALLEST_EXPONENT = -700.0;
static const double ROOT_HALF = 0.70710678118654757;

/* The nearest integer, ties to the even one, of a number below 2^51: beside 1.5 * 2^52 no fraction fits. */
static inline double nearest(double number)
{
    const double place = 6755399441055744.0;
    return (number + place) - place;
}

static double logarithm(double z)
{
    if (z <= 0.0)
        return -INFINITY;
    if (!(z < INFINITY)) /* NaN too */
        return z;
    int exponent;
    double mantissa = frexp(z, &exponent);
    if (mantissa < ROOT_HALF) {
        mantissa = 2.0 * mantissa;
        exponent--;
    }
    double f = mantissa - 1.0, k = exponent;
    double s = f / (2.0 + f);
    double z2 = s * s;
    double w = z2 * z2;
    double odd = z2 * (LOG_FIRST + w * (LOG_ODD[0] + w * (LOG_ODD[1] + w * LOG_ODD[2])));
    double even = w * (LOG_EVEN[0] + w * (LOG_EVEN[1] + w * LOG_EVEN[2]));
    double half = 0.5 * f * f;
    return k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f);
}

static double exponential(double y)
{
    if (y >= 0.0)
        return 1.0;
    if (y <= SMALLEST_EXPONENT)
        return 0.0;
    if (y != y) /* NaN */
        return y;
    double k = nearest(y / (LN2_HIGH + LN2_LOW));
    double high = y - k * LN2_HIGH, low = k * LN2_LOW;
    double r = high - low;
    double t = r * r;
    double c = r - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))));
    return ldexp(1.0 - ((low - (r * c) / (2.0 - c)) - high), (int)k);
}

enum { ABSOLUTE, SQUARE, POWER, LOG }; /* as in lattice.Shape */

static bool transform(const Argument *a)
{
    const double *values = a[0].data;
    double centre = a[2].real, unit = a[3].real, exponent = a[4].real, *out = a[5].data;
    if (a[5].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        double z = (values[row] - centre) / unit;
        switch (a[1].integer) {
        case ABSOLUTE:
            out[row] = fabs(z);
            break;
        case SQUARE:
            out[row] = z * z;
            break;
        case LOG:
            out[row] = logarithm(z);
            break;
        default:
            out[row] = exponential(logarithm(z) * exponent);
        }
    }
    return true;
}

ON_VECTORS static bool quantise(const Argument *a)
{
    const double *values = a[0].data;
    double centre = a[1].real, half_range = a[2].real, steps = a[3].real, lowest = a[4].real, highest = a[5].real;
    int32_t missing = (int32_t)a[6].integer, *out = a[7].data;
    if (a[7].rows < a[0].rows || !(lowest >= INT32_MIN && lowest <= highest && highest <= INT32_MAX))
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        double value = values[row];
        double scaled = ((value - centre) / half_range) * steps;
        /* Both ends are whole numbers, so that clipping first gives the same. NaN goes to an end, then to
           `missing`. */
        scaled = scaled > lowest ? scaled : lowest;
        scaled = scaled < highest ? scaled : highest;
        int32_t whole = (int32_t)nearest(scaled);
        out[row] = value == value ? whole : missing;
    }
    return true;
}

enum { NOT_MOVED = -1, BELOW = 0, ABOVE = 1 };

ON_VECTORS static bool beyond(const Argument *a)
{
    const double *values = a[0].data;
    double lower = a[1].real, upper = a[2].real;
    int32_t missing = (int32_t)a[3].integer, *out = a[4].data;
    if (a[4].rows < a[0].rows)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        double value = values[row];
        int32_t side = value > upper ? ABOVE : value < lower ? BELOW : NOT_MOVED;
        out[row] = value == value ? side : missing;
    }
    return true;
}

/* Times, in seconds since 1970. Day 0 of year 1 is FIRST_DAY; year 10,000 begins at HIGHEST. */

#define DAY INT64_C(86400)
#define FIRST_DAY INT64_C(-719162)
#define LOWEST (FIRST_DAY * DAY)
#define HIGHEST (INT64_C(2932897) * DAY)
#define NO_TIME INT64_MIN
#define CYCLE_DAYS INT64_C(146097)

enum { YEAR, QUARTER, MONTH, WEEK, DAY_OF_MONTH, WEEKDAY, HOUR, DATE }; /* as in calendar_parts.py */

static bool local_seconds(const Argument *a)
{
    const int64_t *values = a[0].data, *starts = a[3].data, *offsets = a[4].data;
    int64_t times = a[1].integer, per_second = a[2].integer, repeats_from = a[5].integer, cycle = a[6].integer;
    int64_t *out = a[7].data, n_starts = a[3].rows, at = 0;
    if (a[7].rows < a[0].rows || n_starts < 1 || a[4].rows < n_starts || per_second < 1 || cycle < 1 ||
        times < 1 || times > DAY || repeats_from < -HIGHEST * 2 || repeats_from > HIGHEST * 2 || cycle > HIGHEST * 2)
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        int64_t value = values[row], second = NO_TIME;
        if (times == 1)
            second = floored(value, per_second);
        else if (-(INT64_C(1) << 40) < value && value < INT64_C(1) << 40)
            second = value * times;
        out[row] = NO_TIME;
        if (second < LOWEST || second >= HIGHEST)
            continue;
        int64_t instant = second;
        if (instant >= repeats_from + cycle)
            instant -= floored(instant - repeats_from, cycle) * cycle;
        /* Neighbouring rows mostly have one offset. */
        if (starts[at] > instant || (at + 1 < n_starts && starts[at + 1] <= instant)) {
            int64_t end = n_starts;
            at = 0;
            while (end - at > 1) {
                int64_t middle = (at + end) >> 1;
                if (starts[middle] <= instant)
                    at = middle;
                else
                    end = middle;
            }
        }
        int64_t local = second + offsets[at];
        if (LOWEST <= local && local < HIGHEST)
            out[row] = local;
    }
    return true;
}

typedef struct {
    int64_t year, month, day;
} Civil;

/* A date from year 1 on; years begin in March here, in eras of 400 years, as in Hinnant's algorithms. */
static Civil civil(int64_t day)
{
    int64_t shifted = day + 719468;
    int64_t era = shifted / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    int64_t day_of_month = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    return (Civil){400 * era + year + (month <= 2), month, day_of_month};
}

static int64_t part_of_day(int64_t day, int64_t part)
{
    int64_t weekday = (day + 3) - floored(day + 3, 7) * 7 + 1; /* 1970 began on a Thursday */
    if (part == WEEKDAY)
        return weekday;
    if (part == WEEK) { /* a week belongs to the year of its Thursday */
        day += 4 - weekday;
        int64_t before = civil(day).year - 1;
        int64_t first = 365 * before + floored(before, 4) - floored(before, 100) + floored(before, 400) + FIRST_DAY;
        return floored(day - first, 7) + 1;
    }
    Civil date = civil(day);
    return part == YEAR ? date.year : part == QUARTER ? (date.month + 2) / 3 : part == MONTH ? date.month : date.day;
}

static bool tabulate(const Argument *a)
{
    int32_t *out = a[1].data;
    if (!within(a[0].integer, HOUR) && a[1].rows)
        return false;
    for (int64_t row = 0; row < a[1].rows; row++)
        out[row] = (int32_t)part_of_day(row + FIRST_DAY, a[0].integer);
    return true;
}

static bool part_of(const Argument *a)
{
    const int64_t *local = a[0].data;
    const int32_t *calendar = a[2].data;
    int64_t part = a[1].integer;
    int32_t *out = a[3].data;
    if (a[3].rows < a[0].rows || (part != HOUR && part != DATE && a[2].rows < CYCLE_DAYS))
        return false;
    for (int64_t row = 0; row < a[0].rows; row++) {
        int64_t second = local[row];
        if (second == NO_TIME) {
            out[row] = NOTHING;
            continue;
        }
        int64_t day = floored(second, DAY);
        if (part == HOUR)
            out[row] = (int32_t)((second - day * DAY) / 3600);
        else if (part == DATE)
            out[row] = (int32_t)day;
        else {
            int64_t cycle = floored(day - FIRST_DAY, CYCLE_DAYS);
            int64_t position = day - FIRST_DAY - cycle * CYCLE_DAYS;
            out[row] = calendar[position] + (int32_t)(part == YEAR ? 400 * cycle : 0);
        }
    }
    return true;
}

const Kernel VALUE_KERNELS[] = {
    {"transform", "float64[1] int64 float64 float64 float64 float64[1]!", transform},
    {"quantise", "float64[1] float64 float64 float64 float64 float64 int32 int32[1]!", quantise},
    {"beyond", "float64[1] float64 float64 int32 int32[1]!", beyond},
    {"local_seconds", "int64[1] int64 int64 int64[1] int64[1] int64 int64 int64[1]!", local_seconds},
    {"tabulate", "int64 int32[1]!", tabulate},
    {"part_of", "int64[1] int64 int32[1] int32[1]!", part_of},
    {0},
};
