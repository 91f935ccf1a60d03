#include "args.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define READS \
    (CLI_CONVERT | CLI_PLAN | CLI_INSPECT | CLI_LS | CLI_DIFF | CLI_DIGEST | CLI_VERIFY | CLI_EXTRACT | CLI_EDIT)
#define WRITES (CLI_CONVERT | CLI_PLAN)
#define CHANGES (WRITES | CLI_DIFF)
#define SAVES (WRITES | CLI_CAT | CLI_EDIT)
#define ALL (READS | CLI_FORMATS | CLI_RECOVER | CLI_CAT)

enum kind { SWITCH, TEXT, LIST, PREFIX, ALLOW, SIZE, LAYOUT };

static const struct flag {
    const char *name;
    char letter; /* 0: none */
    enum kind kind;
    unsigned bits;     /* the commands that take it */
    size_t at;         /* its field in cli_args */
    const char *value; /* as help names it; NULL: none */
    const char *help;
} flags[] = {
    {"output", 'o', TEXT, WRITES, offsetof(cli_args, output), "OUT",
     "the file to write; its extension picks the format"},
    {"to", 0, TEXT, WRITES, offsetof(cli_args, to), "FORMAT", "the format, by a name that decant formats prints"},
    {"output", 'o', TEXT, CLI_EXTRACT, offsetof(cli_args, output), "OUT", "the folder, or the file of one tensor"},
    {"to", 0, TEXT, CLI_EXTRACT, offsetof(cli_args, to), "FORMAT", "npy or raw; npy where NumPy has the dtype"},
    {"output", 'o', TEXT, CLI_CAT, offsetof(cli_args, output), "OUT", "the file to write"},
    {"force", 'f', SWITCH, SAVES | CLI_EXTRACT, offsetof(cli_args, force), NULL,
     "replace OUT when the new one is complete"},
    {"dry-run", 'n', SWITCH, WRITES, offsetof(cli_args, dry_run), NULL, "write nothing: the same as decant plan"},
    {"dry-run", 'n', SWITCH, CLI_EXTRACT, offsetof(cli_args, dry_run), NULL, "write nothing: only say what goes where"},
    {"output", 'o', TEXT, CLI_EDIT, offsetof(cli_args, output), "OUT", "write another file, and leave FILE alone"},
    {"dry-run", 'n', SWITCH, CLI_CAT | CLI_EDIT, offsetof(cli_args, dry_run), NULL,
     "write nothing, and say what would be done"},
    {"verify", 0, SWITCH, SAVES, offsetof(cli_args, verify), NULL,
     "read OUT back from the disk and compare, then publish it"},
    {"prefix", 0, PREFIX, CHANGES, offsetof(cli_args, prefix), "TEXT", "put it in front of the names of the next file"},
    {"include", 0, LIST, CHANGES, offsetof(cli_args, include), "GLOB", "leave out tensors that no GLOB matches"},
    {"exclude", 0, LIST, CHANGES, offsetof(cli_args, exclude), "GLOB", "leave out tensors that GLOB matches"},
    {"rename", 0, LIST, CHANGES | CLI_EDIT, offsetof(cli_args, rename), "s/RE/TO/", "change names, as sed does"},
    {"dtype", 0, LIST, CHANGES, offsetof(cli_args, dtype), "[GLOB=]TYPE", "cast to f64, f32, f16 or bf16"},
    {"put", 0, LIST, CLI_EDIT, offsetof(cli_args, put), "NAME=FILE", "give a tensor the bytes of FILE"},
    {"drop", 0, LIST, CLI_EDIT, offsetof(cli_args, drop), "NAME", "leave a tensor out"},
    {"set", 0, LIST, WRITES | CLI_EDIT, offsetof(cli_args, set), "KEY=VALUE", "set metadata; @FILE as VALUE reads it"},
    {"unset", 0, LIST, WRITES | CLI_EDIT, offsetof(cli_args, unset), "KEY", "leave metadata out"},
    {"deep", 0, SWITCH, CLI_VERIFY, offsetof(cli_args, deep), NULL,
     "read all values too: NaN, infinity, runs of zeros"},
    {"rtol", 0, TEXT, CLI_DIFF, offsetof(cli_args, rtol), "X", "numbers may differ by X times that of B"},
    {"atol", 0, TEXT, CLI_DIFF, offsetof(cli_args, atol), "X", "numbers may differ by X, and by what --rtol allows"},
    {"check", 'c', TEXT, CLI_DIGEST, offsetof(cli_args, check), "FILE", "compare with what digest printed into FILE"},
    {"layout", 0, LAYOUT, WRITES, offsetof(cli_args, layout), "LAYOUT",
     "where data lies: canonical, aligned, congruent"},
    {"align", 0, SIZE, WRITES, offsetof(cli_args, align), "SIZE", "aligned to multiples of this (4096)"},
    {"max-shard-size", 0, SIZE, WRITES, offsetof(cli_args, max_shard), "SIZE",
     "several files of at most this, and an index"},
    {"prune", 0, SWITCH, WRITES, offsetof(cli_args, prune), NULL, "afterwards remove the files that OUT supersedes"},
    {"consume", 0, SWITCH, WRITES | CLI_CAT, offsetof(cli_args, consume), NULL,
     "use the inputs up: they are moved into OUT, and gone when it is complete"},
    {"consume", 0, SWITCH, CLI_EDIT, offsetof(cli_args, consume), NULL, "use the files of --put up"},
    {"resume", 0, SWITCH, CLI_RECOVER, offsetof(cli_args, resume), NULL, "finish it"},
    {"undo", 0, SWITCH, CLI_RECOVER, offsetof(cli_args, undo), NULL, "undo it: all is as before"},
    {"allow", 0, ALLOW, READS, offsetof(cli_args, allow), "WORD,...", "override a refusal: limits, loss, overflow"},
    {"lenient", 0, SWITCH, READS, offsetof(cli_args, lenient), NULL, "accept what the format's own reader accepts"},
    {"json", 0, SWITCH, ALL, offsetof(cli_args, json), NULL, "print one JSON document and nothing else"},
    {"quiet", 'q', SWITCH, ALL, offsetof(cli_args, quiet), NULL, "print errors and answers only"},
    {"verbose", 'v', SWITCH, ALL, offsetof(cli_args, verbose), NULL, "print more, where there is more"},
    {"help", 'h', SWITCH, ALL, offsetof(cli_args, help), NULL, "print this"},
    {"version", 0, SWITCH, ALL, offsetof(cli_args, version), NULL, "print the version"},
};

enum { FLAGS = sizeof flags / sizeof *flags };
static_assert(FLAGS <= 64, "cli_args.given has a bit for each");

static const struct word {
    const char *name;
    unsigned bit;
} words[] = {{"limits", DECANT_ALLOW_LIMITS}, {"loss", DECANT_ALLOW_LOSS}, {"overflow", DECANT_ALLOW_OVERFLOW}};

enum { WORDS = sizeof words / sizeof *words };

/* Names that are kept for what is to come. */
static const struct {
    const char *name, *instead;
} reserved[] = {
    {"root", "the files that are read so far have no nested entries: leave it out"},
    {"rules", "give --include, --exclude, --rename and --dtype instead"},
};

size_t cli_distance(const char *a, const char *b)
{
    size_t row[64], a_len = strlen(a), b_len = strlen(b);

    if (a_len > 63 || b_len > 63)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]), best = row[j] < row[j - 1] ? row[j] : row[j - 1];

            diagonal = row[j];
            row[j] = change < best + 1 ? change : best + 1;
        }
    }
    return row[b_len];
}

const char *cli_closest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    size_t least = strlen(word) < 4 ? 2 : 3; /* less than that is close */

    for (; *candidates; candidates++) {
        size_t distance = cli_distance(word, *candidates);

        if (distance < least) {
            least = distance;
            best = *candidates;
        }
    }
    return best;
}

/* The flag of a name of `len` bytes, among those of the commands in `bits`. */
static const struct flag *find_name(const char *name, size_t len, unsigned bits)
{
    for (size_t i = 0; i < FLAGS; i++)
        if ((flags[i].bits & bits) && strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0)
            return &flags[i];
    return NULL;
}

static const struct flag *find_letter(char letter, unsigned bits)
{
    for (size_t i = 0; i < FLAGS; i++)
        if ((flags[i].bits & bits) && flags[i].letter == letter)
            return &flags[i];
    return NULL;
}

static decant_status unknown(const char *flag, unsigned bits, char *hint, decant_error *err)
{
    const char *names[FLAGS + 1] = {0}, *close;
    char name[64];
    size_t count = 0;

    for (size_t i = 0; i < FLAGS; i++)
        if (flags[i].bits & bits)
            names[count++] = flags[i].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(flag + strspn(flag, "-"), "="), flag + strspn(flag, "-"));
    close = cli_closest(name, names);
    if (close)
        snprintf(hint, 256, "did you mean --%s?", close);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i].name) == 0) {
            snprintf(hint, 256, "%s", reserved[i].instead);
            return decant_error_set(err, DECANT_BAD_CALL, "--%s has a meaning in later versions, and none yet", name);
        }
    return decant_error_set(err, DECANT_BAD_CALL, "unknown flag '%s'", flag);
}

static decant_status set_allow(unsigned *allow, const char *list, char *hint, decant_error *err)
{
    for (const char *at = list;; at++) {
        size_t len = strcspn(at, ","), i;

        for (i = 0; i < WORDS && (strlen(words[i].name) != len || memcmp(words[i].name, at, len) != 0); i++)
            ;
        if (i == WORDS) {
            snprintf(hint, 256, "the words are: limits, loss, overflow");
            return decant_error_set(err, DECANT_BAD_CALL, "--allow: unknown word '%.*s'", (int)len, at);
        }
        *allow |= words[i].bit;
        at += len;
        if (!*at)
            return DECANT_OK;
    }
}

/* "5GB" and "5G" are 5 * 10^9, "5GiB" is 5 * 2^30; without a unit they are bytes. */
static decant_status set_size(uint64_t *size, const char *typed, const char *text, char *hint, decant_error *err)
{
    static const char units[] = "kMGTPE";
    uint64_t value = 0, factor = 1;
    const char *at = text, *unit;

    for (; *at >= '0' && *at <= '9' && value <= (UINT64_MAX - 9) / 10; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    unit = *at ? strchr(units, *at == 'K' ? 'k' : *at) : NULL;
    if (unit) {
        bool binary = at[1] == 'i';

        for (const char *u = units; u <= unit; u++)
            factor *= binary ? 1024 : 1000;
        at += binary ? 2 : 1;
    }
    if (*at == 'B')
        at++;
    if (at == text || *at || value == 0 || value > UINT64_MAX / factor) {
        snprintf(hint, 256, "write it as 4096, 5GB or 5GiB");
        return decant_error_set(err, DECANT_BAD_CALL, "%s: '%.64s' is no size", typed, text);
    }
    *size = value * factor;
    return DECANT_OK;
}

static decant_status set_layout(decant_layout *layout, const char *typed, const char *name, char *hint,
                                decant_error *err)
{
    static const char *const names[] = {"canonical", "aligned", "congruent"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *layout = (decant_layout)i;
            return DECANT_OK;
        }
    snprintf(hint, 256, "the layouts are: canonical, aligned, congruent");
    return decant_error_set(err, DECANT_BAD_CALL, "%s: there is no layout '%.64s'", typed, name);
}

static decant_status add(void *list, const char *value, decant_error *err)
{
    cli_list *l = list;
    const char **items = realloc(l->items, (l->count + 1) * sizeof *items);

    if (!items)
        return decant_error_set(err, DECANT_NOMEM, "out of memory");
    l->items = items;
    l->items[l->count++] = value;
    return DECANT_OK;
}

/* A word that is no flag, of at most `most`. The prefix in front of it is used up. */
static decant_status add_file(cli_args *args, char *path, size_t most, decant_error *err)
{
    if (args->prefix && !args->prefixes && !(args->prefixes = calloc(most, sizeof *args->prefixes)))
        return decant_error_set(err, DECANT_NOMEM, "out of memory");
    if (args->prefixes)
        args->prefixes[args->file_count] = args->prefix;
    args->prefix = NULL;
    args->files[args->file_count++] = path;
    return DECANT_OK;
}

/* Sets what a flag stands for. `value` is NULL for a switch; `typed` is how the flag was written. */
static decant_status set(cli_args *args, const struct flag *flag, const char *typed, const char *value, char *hint,
                         decant_error *err)
{
    char *field = (char *)args + flag->at;
    bool is_one = flag->kind == TEXT || flag->kind == SIZE || flag->kind == LAYOUT;

    if (is_one && args->given & UINT64_C(1) << (flag - flags)) {
        snprintf(hint, 256, "give it once");
        return decant_error_set(err, DECANT_BAD_CALL, "%s is given twice", typed);
    }
    args->given |= UINT64_C(1) << (flag - flags);
    switch (flag->kind) {
    case SWITCH:
        *(bool *)(void *)field = true;
        return DECANT_OK;
    case TEXT:
        *(const char **)(void *)field = value;
        return DECANT_OK;
    case SIZE:
        return set_size((uint64_t *)(void *)field, typed, value, hint, err);
    case LAYOUT:
        return set_layout((decant_layout *)(void *)field, typed, value, hint, err);
    case LIST:
        return add(field, value, err);
    case PREFIX:
        if (args->prefix) {
            snprintf(hint, 256, "give one, in front of the file that it is for");
            return decant_error_set(err, DECANT_BAD_CALL, "two prefixes for one file");
        }
        args->prefix = value;
        return DECANT_OK;
    case ALLOW:
        break;
    }
    return set_allow((unsigned *)(void *)field, value, hint, err);
}

/* One word of the line that begins with "-"; `next` is the word after it, or NULL. `took`: it was the value. */
static decant_status parse_word(cli_args *args, unsigned bits, const char *word, const char *next, bool *took,
                                char *hint, decant_error *err)
{
    bool is_long = word[1] == '-';
    const char *at = word + (is_long ? 2 : 1);

    do {
        size_t len = is_long ? strcspn(at, "=") : 1;
        const struct flag *flag = is_long ? find_name(at, len, bits) : find_letter(*at, bits);
        const char *value = NULL;
        char typed[32];
        decant_status rc;

        if (!flag)
            return unknown(word, bits, hint, err);
        snprintf(typed, sizeof typed, "%s%.*s", is_long ? "--" : "-", (int)len, at);
        at += len;
        if (flag->kind != SWITCH) {
            value = *at ? at + (*at == '=') : next;
            *took = !*at;
            at += strlen(at);
            if (!value) {
                snprintf(hint, 256, "%s %s", typed, flag->value);
                return decant_error_set(err, DECANT_BAD_CALL, "%s lacks its value", typed);
            }
        } else if (is_long && *at) {
            snprintf(hint, 256, "%s alone", typed);
            return decant_error_set(err, DECANT_BAD_CALL, "%s takes no value", typed);
        }
        rc = set(args, flag, typed, value, hint, err);
        if (rc)
            return rc;
    } while (*at);
    return DECANT_OK;
}

decant_status cli_args_parse(cli_args *args, unsigned bits, int count, char **argv, char *hint, decant_error *err)
{
    bool only_files = false;

    args->files = argv;
    for (int i = 0; i < count; i++) {
        bool took = false;
        decant_status rc = DECANT_OK;

        if (only_files || argv[i][0] != '-' || argv[i][1] == '\0')
            rc = add_file(args, argv[i], (size_t)count, err);
        else if (strcmp(argv[i], "--") == 0)
            only_files = true;
        else
            rc = parse_word(args, bits, argv[i], i + 1 < count ? argv[i + 1] : NULL, &took, hint, err);
        if (rc)
            return rc;
        i += took;
    }
    if (args->prefix) {
        snprintf(hint, 256, "give it in front of the file that it is for");
        return decant_error_set(err, DECANT_BAD_CALL, "no file comes after --prefix %s", args->prefix);
    }
    return DECANT_OK;
}

void cli_args_close(cli_args *args)
{
    cli_list *const lists[] = {&args->include, &args->exclude, &args->rename, &args->dtype,
                               &args->set,     &args->unset,   &args->put,    &args->drop};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->items);
    free(args->prefixes);
}

bool cli_args_json(int count, char **argv)
{
    for (int i = 0; i < count && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

void cli_args_help(FILE *out, unsigned bits)
{
    for (size_t i = 0; i < FLAGS; i++) {
        const struct flag *flag = &flags[i];
        char left[64];

        if (!(flag->bits & bits))
            continue;
        snprintf(left, sizeof left, "%c%c%c --%s%s%s", flag->letter ? '-' : ' ', flag->letter ? flag->letter : ' ',
                 flag->letter ? ',' : ' ', flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        fprintf(out, "  %-24s %s\n", left, flag->help);
    }
}
