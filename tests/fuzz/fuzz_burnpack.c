/*
 * Any bytes as a Burnpack file, leniently if not strictly. What opens is planned, rendered and opened again: it is the same
 * model, and the second time the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "format/burnpack/quant.h"
#include "support/models.h"
#include "support/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static decant_model *open_bytes(const uint8_t *data, size_t size, bool lenient)
{
    decant_model *model = NULL;
    decant_error err = {0};
    decant_status rc = model_open(&dcn_burnpack, data, size, NULL, lenient, &model, &err);

    require(rc == err.status && (rc == DECANT_OK) == (model != NULL));
    return model;
}

/* NULL where many names share few bytes, so that a small file would make a large one. */
static uint8_t *save(const decant_model *model, size_t *len)
{
    dcn_layout how = {0};
    dcn_plans plans = {0};
    uint8_t *file = NULL;

    require(dcn_burnpack.emit(model, &how, &plans, NULL) == DECANT_OK);
    if (plans.items[0].total < 1 << 24)
        file = render_plan(&plans.items[0], len);
    dcn_plans_close(&plans);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decant_model *model = open_bytes(data, size, false), *again;
    uint8_t *file, *file_again;
    size_t len, len_again;

    if (!model)
        model = open_bytes(data, size, true);
    if (!model)
        return 0;
    if ((file = save(model, &len))) {
        again = open_bytes(file, len, true); /* a name may hold a NUL */
        require(again);
        check_same_models(again, model);
        file_again = save(again, &len_again);
        require(file_again && len == len_again && memcmp(file, file_again, len) == 0);
        free(file_again);
        decant_model_close(&again);
        free(file);
    }
    decant_model_close(&model);
    return 0;
}
