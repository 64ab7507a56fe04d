/* Activations under the names that configuration files of other libraries use. */
#ifndef VLP_CORE_ACT_NAMES_H
#define VLP_CORE_ACT_NAMES_H

#include "core/json.h"
#include "core/kernels.h"

/* Reads object[key]; absent or null gives fallback. An unknown name is VLP_ERR_UNSUPPORTED and the
 * message lists the known ones. `where` is the file. */
vlp_status vlp_act_read(vlp_act *out, const vlp_json *object, const char *key, vlp_act fallback,
                        const char *where);

/* The first name of it in Hugging Face's configurations. */
const char *vlp_act_name(vlp_act act);

#endif
