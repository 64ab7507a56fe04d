/* Training a WordPiece vocabulary from text: counted words, an alphabet, then the most frequent
 * pairs merged until the vocabulary is full, which is what Hugging Face's
 * BertWordPieceTokenizer.train does. The result depends on the texts alone, not on their order.
 *
 *     vlp_wordpiece_trainer *trainer;
 *     VLP_TRY(vlp_wordpiece_trainer_new(&trainer, &(vlp_wordpiece_train_options){8000, .lower_case
 * = true})); for each text: VLP_TRY_DONE(vlp_wordpiece_trainer_add(trainer, text, len));
 *     VLP_TRY_DONE(vlp_wordpiece_trainer_finish(trainer, &tokenizer));
 *     vlp_wordpiece_trainer_free(trainer); */
#ifndef VLP_TEXT_WORDPIECE_TRAIN_H
#define VLP_TEXT_WORDPIECE_TRAIN_H

#include "text/tokenizer.h"

typedef struct {
    int32_t vocab_size;     /* at most; with [PAD] [UNK] [CLS] [SEP] [MASK] as ids 0 to 4 */
    int32_t min_frequency;  /* of a pair that is merged; 0 = 2 */
    int32_t limit_alphabet; /* the most frequent characters that are kept; 0 = 1000 */
    bool lower_case;        /* and strip accents */
} vlp_wordpiece_train_options;

typedef struct vlp_wordpiece_trainer vlp_wordpiece_trainer;

vlp_status vlp_wordpiece_trainer_new(vlp_wordpiece_trainer **out,
                                     const vlp_wordpiece_train_options *options);
void vlp_wordpiece_trainer_free(vlp_wordpiece_trainer *trainer);

/* Counts the words of one text. Words longer than 100 characters, which would always encode to
 * [UNK], are left out. */
vlp_status vlp_wordpiece_trainer_add(vlp_wordpiece_trainer *trainer, const char *text, size_t len);

/* Fails with VLP_ERR_USAGE when no word was added or the alphabet alone exceeds vocab_size. */
vlp_status vlp_wordpiece_trainer_finish(vlp_wordpiece_trainer *trainer, vlp_tokenizer **out);

#endif
