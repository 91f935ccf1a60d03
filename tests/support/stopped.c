#include "support/stopped.h"

#include <errno.h>
#include <stdio.h>

const char stopped_journal[] = "p.decant-journal";

const caravan_scene stopped_even = {.name = "even",
                                    .sources = {{.name = "s/a", .len = 384}},
                                    .outputs = {{.name = "p", .held = 16, .pieces = {{-1, 0, 64}, {0, 0, 384}}}},
                                    .batch = 128,
                                    .unit = 64};

simdisk *stopped_before(caravan *c, bool any, dcn_verb verb, const char *name, size_t n)
{
    simdisk *disk = caravan_disk(c), *killed = NULL;
    gates g;
    decant_error err;

    gates_up(&g, &disk->io);
    gates_fail(&g, (gates_fault){.nth = n,
                                 .one_verb = !any,
                                 .verb = verb,
                                 .name = name,
                                 .status = DECANT_IO,
                                 .os_code = EIO,
                                 .crash = true});
    (void)!caravan_pour(c, disk, &(caravan_how){0}, &err);
    if (g.fired)
        killed = simdisk_clone(disk);
    gates_down(&g);
    simdisk_free(&disk);
    return killed;
}

void stopped_everywhere(stopped_act *act, size_t stride)
{
    for (size_t i = 0; i < caravan_scene_count; i++) {
        simdisk *disk;
        caravan c;

        caravan_load(&c, &caravan_scenes[i]);
        for (size_t n = 0; (disk = stopped_before(&c, true, DCN_DO_OPEN, NULL, n)); n += stride) {
            char when[64];

            snprintf(when, sizeof when, "%s, killed at %zu", c.scene->name, n);
            act(&c, disk, when);
            simdisk_free(&disk);
        }
        caravan_close(&c);
    }
}

bool stopped_has(const simdisk *disk, const char *path)
{
    return simdisk_get(disk, path, &(size_t){0}) != NULL;
}

void stopped_find(simdisk *disk, const char *ending, char out[STOPPED_NAME])
{
    const char *names = simdisk_names(disk, "."), *end = strstr(names, ending), *at = end;

    out[0] = '\0';
    while (at && at > names && at[-1] != ' ')
        at--;
    if (at)
        snprintf(out, STOPPED_NAME, "%.*s", (int)(end - at) + (int)strlen(ending), at);
}

void stopped_overwrite(simdisk *disk, const char *path, uint64_t at, const void *data, size_t len)
{
    dcn_chunk chunk = {data, len};
    dcn_file *file = NULL;
    decant_error err;

    CHECK_OK(dcn_io_open(&disk->io, path, DCN_WRITE, &file, &err), &err);
    CHECK_OK(dcn_file_write(file, at, &chunk, 1, &err), &err);
    CHECK_OK(dcn_file_sync(file, &err), &err);
    dcn_file_close(&file);
}
