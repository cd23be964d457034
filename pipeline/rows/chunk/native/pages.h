/* What both halves of reading pages share: bytes of a file, and what a table says of a page, a column each.

   The bytes come from a file, and nothing that they say is believed: what is not exactly as expected here is
   refused, and Arrow reads it. No read leaves its array, and nothing is allocated. */

#ifndef SUFFICE_PAGES_H
#define SUFFICE_PAGES_H

#include <string.h>

#include "call.h"

typedef struct {
    const uint8_t *at, *end;
} Bytes;

typedef enum { READ, ENDS, WRONG } Outcome; /* read, cut off by the end of the bytes, or refused */

/* An unsigned number of at most so many bits, seven in a byte. */
static inline Outcome read_varint(Bytes *bytes, int bits, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (bytes->at == bytes->end)
            return ENDS;
        uint64_t byte = *bytes->at++;
        if (bits - shift < 7 && (byte & 0x7F) >> (bits - shift))
            return WRONG;
        *number |= (byte & 0x7F) << shift;
        if (byte < 0x80)
            return READ;
    }
    return WRONG;
}

enum { KIND, ENCODING, N_VALUES, BEGIN, COMPRESSED, UNCOMPRESSED, LEVELS, IS_COMPRESSED, N_NULLS, CRC, N_ROWS,
       LEVEL_ENCODING, REPEATED_ENCODING, REPEATED_LEVELS, IS_SORTED, N_SLOTS, NO_SLOT };
enum { N_COLUMNS = CRC + 1 };

#endif
