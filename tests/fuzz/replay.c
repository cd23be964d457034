/* Do inputs again that stand one after the other in a file, each after its length. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file)
        return 2;
    uint32_t size;
    long n_inputs = 0;
    for (; fread(&size, sizeof size, 1, file) == 1; n_inputs++) {
        uint8_t *data = malloc(size); /* of its very size */
        if (!data || fread(data, 1, size, file) != size)
            return 2;
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    fclose(file);
    printf("%ld inputs\n", n_inputs);
    return 0;
}
