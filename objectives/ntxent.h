/* SimCLR (Chen et al., 2020): a projection head and NT-Xent over two views of every picture. */
#ifndef VLP_OBJECTIVES_NTXENT_H
#define VLP_OBJECTIVES_NTXENT_H

#include "core/nn.h"

/* fc2(relu(fc1 h)) */
typedef struct {
    vlp_dense fc1, fc2;
} vlp_simclr_head;
void vlp_simclr_head_declare(vlp_simclr_head *head, vlp_params *params, int64_t in, int64_t hidden,
                             int64_t out);
vlp_tensor *vlp_simclr_head_forward(vlp_tape *tape, const vlp_simclr_head *head, vlp_tensor *h);

/* z [2N, D]: rows i and N + i are two views of one picture. Each row's positive is the other view,
 * its negatives are all others:
 *   mean over the 2N rows of -log(exp(s(i, p)) / sum_{j != i} exp(s(i, j))), s = cosine / t
 * Google's code gives twice that. *logits, if asked for, is s of the first view with the second. */
vlp_tensor *vlp_ntxent_loss(vlp_tape *tape, vlp_tensor *z, double temperature, vlp_tensor **logits);

#endif
