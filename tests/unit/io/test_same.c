/* The disk in memory does what the system does: one script, both, and every answer compared. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"
#include "support/simdisk.h"

typedef struct script {
    dcn_dir *dir;
    dcn_file *files[4];
    char log[1 << 20];
    size_t len;
    size_t steps;
    bool syncs; /* slow on a real disk */
} script;

static void say(script *s, const char *format, ...) DECANT_PRINTF(2, 3);

static void say(script *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    s->len += (size_t)vsnprintf(s->log + s->len, sizeof s->log - s->len, format, args);
    va_end(args);
    CHECK(s->len < sizeof s->log);
}

static void say_status(script *s, decant_status rc)
{
    say(s, " %s\n", decant_status_name(rc));
}

static const char *const names[] = {"a", "b", "c", "link", "sub"};

static int collect(void *ctx, const char *name)
{
    char *seen = ctx;

    for (size_t i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0)
            seen[i] = 'x';
    return 0;
}

static void say_facts(script *s, const dcn_facts *f)
{
    say(s, " kind %d", f->kind);
    if (f->kind == DCN_KIND_REGULAR)
        say(s, " size %llu links %llu mode %o", (unsigned long long)f->size, (unsigned long long)f->links, f->mode);
}

/* What a folder looks like to a reader. */
static void say_folder(script *s)
{
    char seen[] = ".....";
    dcn_facts facts;

    say(s, "   list");
    say_status(s, dcn_dir_list(s->dir, collect, seen, NULL));
    say(s, "   %s", seen);
    CHECK_EQ(dcn_dir_stat(s->dir, ".", &facts, NULL), DECANT_OK);
    say_facts(s, &facts);
    for (size_t i = 0; i < 5; i++)
        if (dcn_dir_stat(s->dir, names[i], &facts, NULL) == DECANT_OK) {
            say(s, " %s", names[i]);
            say_facts(s, &facts);
        }
    say(s, "\n");
}

static void step_open(script *s, uint64_t r, size_t slot, const char *name)
{
    static const unsigned ways[] = {DCN_READ,
                                    DCN_WRITE,
                                    DCN_READ | DCN_WRITE,
                                    DCN_READ | DCN_WRITE | DCN_CREATE,
                                    DCN_READ | DCN_WRITE | DCN_CREATE | DCN_TRUNCATE,
                                    DCN_READ | DCN_WRITE | DCN_CREATE_NEW,
                                    DCN_READ | DCN_NO_FOLLOW,
                                    DCN_WRITE | DCN_CREATE_NEW | DCN_ONCE};
    unsigned flags = ways[r % 8];
    dcn_facts facts;

    dcn_file_close(&s->files[slot]);
    say(s, "open %s %x", name, flags);
    say_status(s, dcn_dir_open(s->dir, name, flags, r & 8 ? 0666 : 0600, &s->files[slot], NULL));
    if (s->files[slot] && dcn_file_facts(s->files[slot], &facts, NULL) == DECANT_OK) {
        say_facts(s, &facts);
        say(s, " as %s\n", s->files[slot]->name);
        if (facts.kind != DCN_KIND_REGULAR)
            dcn_file_close(&s->files[slot]);
    }
}

static void step_file(script *s, uint64_t r, size_t slot)
{
    dcn_file *f = s->files[slot], *other = s->files[(slot + 1) % 4];
    uint8_t data[64], back[2][32] = {{0}};
    uint64_t at = r / 16 % 100;
    size_t len = r / 2048 % 32;
    const dcn_chunk chunks[] = {{data, len}, {data + 32, 32 - len}};
    const dcn_range ranges[] = {{at + len, back[1], 32 - len}, {at, back[0], len}};
    decant_status rc;

    test_stream(r, data, sizeof data);
    switch (r % 8) {
    case 0:
    case 1:
        say(s, "write %zu %llu+%zu", slot, (unsigned long long)at, len);
        say_status(s, dcn_file_write(f, at, chunks, 2, NULL));
        break;
    case 2:
    case 3:
        say(s, "read %zu %llu+%zu", slot, (unsigned long long)at, len);
        rc = dcn_file_read(f, ranges, 2, NULL);
        say_status(s, rc);
        for (size_t i = 0; !rc && i < 64; i++)
            say(s, "%02x%s", back[i / 32][i % 32], i == 63 ? "\n" : "");
        break;
    case 4:
        if (dcn_file_write(f, 0, NULL, 0, NULL) || dcn_file_write(f, 0, &(dcn_chunk){"", 1}, 1, NULL))
            break; /* systems differ in how they refuse a handle that cannot write */
        say(s, "resize %zu %llu", slot, (unsigned long long)at);
        say_status(s, dcn_file_resize(f, at, NULL));
        break;
    case 5:
        say(s, "lock %zu", slot);
        say_status(s, dcn_file_lock(f, NULL));
        break;
    case 6:
        say(s, "sync %zu", slot);
        say_status(s, s->syncs ? dcn_file_sync(f, NULL) : DECANT_OK);
        break;
    default:
        if (other) {
            say(s, "resemble %zu", slot);
            say_status(s, dcn_file_resemble(f, other, NULL));
        }
        break;
    }
}

static void step_dir(script *s, uint64_t r, const char *name, const char *to)
{
    switch (r % 5) {
    case 0:
        say(s, "rename %s %s", name, to);
        say_status(s, dcn_dir_rename(s->dir, name, to, 0, NULL));
        break;
    case 1:
        say(s, "rename new %s %s", name, to);
        say_status(s, dcn_dir_rename(s->dir, name, to, DCN_NO_REPLACE, NULL));
        break;
    case 2:
        say(s, "link %s %s", name, to);
        say_status(s, dcn_dir_link(s->dir, name, to, NULL));
        break;
    case 3:
        say(s, "remove %s", name);
        say_status(s, dcn_dir_remove(s->dir, name, NULL));
        break;
    default:
        say(s, "sync");
        say_status(s, s->syncs ? dcn_dir_sync(s->dir, NULL) : DECANT_OK);
        break;
    }
}

static void run(script *s, dcn_io *io, const char *folder, uint64_t seed)
{
    CHECK_EQ(dcn_io_open_dir(io, folder, &s->dir, NULL), DECANT_OK);
    for (s->steps = 0; s->steps < 200; s->steps++) {
        uint64_t r = test_random(&seed), what = test_random(&seed) % 8;
        size_t slot = test_random(&seed) % 4;
        const char *name = names[test_random(&seed) % 5], *to = names[test_random(&seed) % 3];

        if (what < 2)
            step_open(s, r, slot, name);
        else if (what < 6 && s->files[slot])
            step_file(s, r, slot);
        else
            step_dir(s, strcmp(name, "sub") == 0 ? 3 : r, name, to); /* folders are only ever tried to be removed */
        say_folder(s);
    }
    for (size_t i = 0; i < 4; i++)
        dcn_file_close(&s->files[i]);
    dcn_dir_close(&s->dir);
}

/* Shows the first line that differs. */
static void check_same(const char *posix, const char *memory, uint64_t seed)
{
    size_t same = 0, line = 0;

    for (; posix[same] && posix[same] == memory[same]; same++)
        if (posix[same] == '\n')
            line = same + 1;
    if (posix[same] != memory[same])
        test_fail(__FILE__, __LINE__, "seed %llu: after\n%.*s\nthe system says\n%.*s\nthe disk in memory\n%.*s",
                  (unsigned long long)seed, line > 400 ? 400 : (int)line, posix + (line > 400 ? line - 400 : 0),
                  (int)strcspn(posix + line, "\n"), posix + line, (int)strcspn(memory + line, "\n"), memory + line);
}

TEST(simdisk__does_what_the_system_does)
{
    mode_t old = umask(022); /* the other disk's */
    script *real = calloc(1, sizeof *real), *sim = calloc(1, sizeof *sim);

    CHECK(real && sim);
    for (uint64_t seed = 0; seed < 100; seed++) {
        simdisk *disk = simdisk_new();
        char path[4200];

        snprintf(path, sizeof path, "%s/%llu", test_folder(), (unsigned long long)seed);
        CHECK_EQ(mkdir(path, 0777), 0);
        CHECK_EQ(mkdir(strcat(path, "/sub"), 0777), 0);
        *strrchr(path, '/') = '\0';
        CHECK_EQ(symlink("a", strcat(path, "/link")), 0);
        *strrchr(path, '/') = '\0';
        simdisk_make(disk, "sub", DCN_KIND_FOLDER, NULL);
        simdisk_make(disk, "link", DCN_KIND_LINK, "a");

        real->len = sim->len = 0;
        real->syncs = sim->syncs = seed < 4;
        run(real, dcn_io_posix(), path, seed);
        run(sim, &disk->io, ".", seed);
        check_same(real->log, sim->log, seed);
        simdisk_free(&disk);
    }
    umask(old);
    free(real);
    free(sim);
}
