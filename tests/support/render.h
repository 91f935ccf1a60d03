/* An output in memory, made from its plan in the most direct way there is: what pour must come to. */
#ifndef TEST_RENDER_H
#define TEST_RENDER_H

#include "plan/plan.h"
#include "support/test.h"

/* All bytes of the output; ends the test if its data cannot be read. Freed by the caller. */
uint8_t *render_plan(const dcn_plan *plan, size_t *len);

#endif
