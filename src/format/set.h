/* What a path stands for: a file, a folder with a model in it, or the first part of a split set. */
#ifndef DCN_FORMAT_SET_H
#define DCN_FORMAT_SET_H

#include "format/input.h"
#include "model/model.h"

/*
 * Opens what a path stands for:
 *
 * - a file: that file, with those of its folder beside it; the first part of a split set whose index is beside it: the index;
 * - a folder: the one index in it, else the one model in it: a file, or the first part of a split set.
 *
 * Names alone are looked at, and no file of a folder is opened but the one. A folder with several indexes, or with several
 * models and no index, is refused, naming them.
 *
 * @param out  [owned]
 * @return DECANT_UNSUPPORTED for a folder with no model or several, DECANT_LIMIT for one with more than limits->shards
 *         models; and as dcn_input_open()
 */
decant_status dcn_set_open(dcn_io *io, const char *path, const dcn_limits *limits, dcn_input **out, decant_error *err);

/*
 * Notes to a model what was passed over in the folder that was opened.
 *
 * @return DECANT_MALFORMED if the index that was opened for a first part does not name that
 */
decant_status dcn_set_note(const dcn_input *in, decant_model *model, decant_error *err);

#endif
