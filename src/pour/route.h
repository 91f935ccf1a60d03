/*
 * All that is checked before the first byte: the same code for a plan and for a save; changes nothing. Then who fills each
 * range and why: blocks of a source are shared where they can be (`clone`), all else is copied.
 */
#ifndef DCN_ROUTE_H
#define DCN_ROUTE_H

#include "pour/steps.h"

/* How the bytes of a source get into the outputs. */
typedef enum dcn_way {
    DCN_COPY,
    DCN_CLONE, /* blocks are shared, or have been; what is not in whole blocks is copied */
    DCN_DRAIN  /* moved: freed in the source when they are safe */
} dcn_way;

/* Per source: what is done with it and why nothing better. */
typedef struct dcn_route {
    dcn_source *source; /* held */
    uint64_t bytes;     /* of it in the outputs, or in what is made for them */
    uint64_t shared;    /* of these in blocks that can be shared; after the save, that are */
    dcn_way way;
    bool given;         /* it goes when the outputs are in place */
    const char *reason; /* why not a better one, or not for all of it; a literal */
} dcn_route;

enum { DCN_REPLACES = 3 }; /* a link; a file with other names; one of another owner */

typedef struct dcn_routes {
    dcn_route *items; /* in the order in which sources are first used */
    size_t count, cap;
    bool makes;                         /* some bytes are made of others, which takes staging */
    uint64_t shared;                    /* bytes of all in blocks that can be shared */
    uint64_t room;                      /* disk needed, bytes */
    uint64_t free;                      /* disk free, bytes; 0 if not known */
    uint64_t taken;                     /* by how much less was free at a look, at most */
    dcn_lasts lasts;                    /* what the outputs outlive */
    size_t undone;                      /* earlier saves to the outputs that were interrupted, and are undone first */
    const char *replaces[DCN_REPLACES]; /* what is special about what is replaced; literals, NULL ends */
} dcn_routes;

/* The route of a source. Neighbours come from one source: ask with the same `last`, 0 at first. NULL: there is none. */
dcn_route *dcn_routes_find(const dcn_routes *routes, const dcn_source *source, size_t *last);

/* The blocks of a source were to be shared, and the system does not: they are copied. */
void dcn_route_copy(dcn_route *route);

/* The sources of a plan, each once, with the bytes of it that are used, and of these what could be shared (dcn_cut). */
decant_status dcn_routes_collect(const dcn_plans *plans, uint64_t share, dcn_routes *out, decant_error *err);

/* A file output to be. */
typedef struct dcn_landing {
    const char *name; /* bare, in the folder of the save */
    const char *path; /* for messages and reports; "" where there is none */
    uint64_t total;   /* bytes */
} dcn_landing;

/*
 * File outputs in `dir`, of which the space is asked: the folder exists and can be written, what is at each name may be replaced (EXISTS unless
 * `replace`; only a regular file or a link can be) and is no source unless `replace` (SAME_FILE), no name is another
 * output's, no limit of file size is passed, the scratch names fit, and where there are
 * several nobody else can put a journal into the folder.
 */
decant_status dcn_routes_check_files(dcn_routes *routes, dcn_dir *dir, const dcn_landing *landings, size_t count,
                                     bool replace, dcn_space *space, decant_error *err);

/* There is the room that is needed. @return DECANT_NO_SPACE */
decant_status dcn_routes_check_room(dcn_routes *routes, const dcn_dir *dir, const dcn_space *space, decant_error *err);

/* How much room is taken now, when it is most: for the report. A system that does not tell is no failure. */
void dcn_routes_look(dcn_routes *routes, dcn_dir *dir);

/* A file output in place: no limit of file size is passed, which would end the process. The rest shows when it is opened. */
decant_status dcn_routes_check_in_place(dcn_dir *dir, uint64_t total, decant_error *err);

void dcn_routes_close(dcn_routes *routes);

#endif
