/* How Python calls the kernels: arrays by the buffer protocol, checked against a signature.

   A signature lists a kernel's arguments, as jit.py writes them: "int32[1]" is an array of one dimension that
   is read, "int64[2]!" one of two that is written, and "int64" a number. */

#ifndef SUFFICE_CALL_H
#define SUFFICE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_ARGUMENTS 8

/* One argument: an array, its rows and columns (1 where it has one dimension); or a number. */
typedef struct {
    void *data;
    int64_t rows, columns, integer;
    uint64_t natural;
    double real;
} Argument;

/* A kernel tells whether its arrays fit together and hold no index out of range; what it wrote until then is
   no result. */
typedef bool (*Function)(const Argument *);

typedef struct {
    const char *name, *signature;
    Function function;
} Kernel;

extern const Kernel CHUNK_KERNELS[], VALUE_KERNELS[], UNIT_KERNELS[], HEADER_KERNELS[],
    PAGE_KERNELS[];

/* Loops that gain from wide vectors: compiled twice, and chosen by the processor that runs them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define ON_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define ON_VECTORS
#endif

/* An index from data or from another array: unsigned, so that one comparison checks both ends. */
static inline bool within(int64_t index, int64_t size) { return (uint64_t)index < (uint64_t)size; }

/* Floored division, as Python has it; the divisor is positive. */
static inline int64_t floored(int64_t number, int64_t divisor)
{
    int64_t quotient = number / divisor;
    return quotient - (number % divisor < 0);
}

#endif
