/* Read before each source by clang-tidy, which does not see across files: whoever sets an error gives back its status. */
#include "base/error.h"

#define decant_error_set(err, status, ...) ((decant_error_set)(err, status, __VA_ARGS__), (status))
#define dcn_error_nomem(err) ((dcn_error_nomem)(err), DECANT_NOMEM)
