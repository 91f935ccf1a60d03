/* Runs a fuzz target over files and the files of folders, where there is no libFuzzer: the corpus as a plain test. */
#define _GNU_SOURCE

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static int replay(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    size_t size = (size_t)st->st_size;
    uint8_t *data = NULL;
    FILE *file = NULL;
    int rc = -1;

    (void)ftw;
    if (type != FTW_F)
        return 0;
    /* As large as the input and no larger, so that a sanitizer sees one byte too far. */
    if (!(data = malloc(size ? size : 1)) || !(file = fopen(path, "rb")) || fread(data, 1, size, file) != size) {
        perror(path);
        goto done;
    }
    LLVMFuzzerTestOneInput(data, size);
    replayed++;
    rc = 0;
done:
    if (file)
        fclose(file);
    free(data);
    return rc;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (nftw(argv[i], replay, 16, FTW_PHYS)) {
            fprintf(stderr, "%s: cannot be replayed\n", argv[i]);
            return 1;
        }
    }
    printf("%u inputs replayed\n", replayed);
    return replayed ? 0 : 1;
}
