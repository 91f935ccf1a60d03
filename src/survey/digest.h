/*
 * Digests: of each tensor the SHA-256 of its data; of the model that of the lines "HEX DTYPE SHAPE NAME", sorted by bytes.
 * Order, container and metadata do not count.
 */
#ifndef DCN_DIGEST_H
#define DCN_DIGEST_H

#include <decant/check.h>

#include "survey/scan.h"

/* Digests under way. */
typedef struct dcn_digester dcn_digester;

/*
 * For `count` tensors, that come by in any order.
 *
 * @param found  may be NULL; else told of each when all its data has passed
 * @param model  [lent] of which it is told; may be NULL without `found`
 * @return DECANT_UNSUPPORTED in a build without SHA-256
 */
decant_status dcn_digester_create(size_t count, const decant_model *model, decant_on_digest found, void *ctx,
                                  dcn_digester **out, decant_error *err);

/* What is to be shown the data. */
const dcn_viewer *dcn_digester_viewer(dcn_digester *d);

/* The model's digest, when all tensors have passed. */
decant_status dcn_digester_end(dcn_digester *d, char hex[DECANT_DIGEST], decant_error *err);

void dcn_digester_close(dcn_digester **d);

/* As decant_digest(), in slots as `cut` says. */
decant_status dcn_digest(const decant_model *model, const dcn_cut *cut, const decant_digest_options *options,
                         decant_on_digest found, void *ctx, char hex[DECANT_DIGEST], decant_error *err);

#endif
