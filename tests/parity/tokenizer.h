/* Runs tokenizer reference cases: exact equality of ids and tokens. */
#ifndef VLP_TESTS_PARITY_TOKENIZER_H
#define VLP_TESTS_PARITY_TOKENIZER_H

#include "core/status.h"

#include <stdio.h>

/* folder holds texts.json (and pairs.json) beside the tokenizer's own files. Prints each difference
 * and a summary line a file to `out`; adds the number of differing entries to *failures. Fails only
 * when the case cannot be read. */
vlp_status parity_tokenizer(const char *folder, FILE *out, int *failures);

#endif
