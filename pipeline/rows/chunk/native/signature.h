/* What a kernel's signature says of its arguments. See call.h. */

#ifndef SUFFICE_SIGNATURE_H
#define SUFFICE_SIGNATURE_H

#include <string.h>

#include "call.h"

typedef struct {
    char type;    /* as in a buffer's format: i q B Q d ? */
    int size;     /* bytes of one value */
    int dimensions; /* 0: a number */
    bool is_written;
} Parameter;

/* Read one word of a signature; return its end, or NULL where it is none. */
static inline const char *read_word(const char *word, Parameter *parameter)
{
    static const struct {
        const char *name;
        char type;
        int size;
    } TYPES[] = {{"int32", 'i', 4},   {"int64", 'q', 8},   {"uint8", 'B', 1},
                 {"uint64", 'Q', 8},  {"float64", 'd', 8}, {"boolean", '?', 1}};
    for (size_t at = 0; at < sizeof TYPES / sizeof *TYPES; at++) {
        size_t length = strlen(TYPES[at].name);
        if (strncmp(word, TYPES[at].name, length))
            continue;
        *parameter = (Parameter){.type = TYPES[at].type, .size = TYPES[at].size};
        word += length;
        if (*word == '[') {
            parameter->dimensions = word[1] - '0';
            word += 3;
        }
        if (*word == '!') {
            parameter->is_written = true;
            word++;
        }
        return *word == ' ' || !*word ? word : NULL;
    }
    return NULL;
}

/* Read all of a signature; return how many parameters it has, or -1 where it is none. */
static inline int read_signature(const char *word, Parameter *parameters)
{
    int n_parameters = 0;
    while (word && *word) {
        if (n_parameters == MOST_ARGUMENTS)
            return -1;
        word = read_word(word, &parameters[n_parameters++]);
        if (word && *word == ' ')
            word++;
    }
    return word ? n_parameters : -1;
}

#endif
