/* Captions for the quick start's corpus, made from titles, file names and sentences.
 *
 * A picture collection names its pictures for people who browse folders:
 * "apple_with_worm_dan_gerh_01", "Clipart by Nicu Buculei - smiley111", "Milk (B and W)". These
 * functions turn such names into the words that somebody would search for: lower case, one space,
 * no numbering, no author, no markup. The rules are tables in captions.c and docs/corpus.md shows
 * each with an example.
 *
 * All append to `out` (cleared first), NUL-terminated; out stays empty when nothing is left. */
#ifndef VLP_TOOLS_CAPTIONS_H
#define VLP_TOOLS_CAPTIONS_H

#include "core/memory.h"

#include <stdbool.h>

/* A title, for instance of a PNG Title chunk. `author` (may be NULL) is removed from its end. */
vlp_status caption_from_title(const char *title, const char *author, vlp_buf *out);

/* A file name without folder and extension. Words that begin an author's name are removed from its
 * end, because such names are cut to a fixed length: "screwdriver_peterm_" by "Peter M." */
vlp_status caption_from_stem(const char *stem, const char *author, vlp_buf *out);

/* The first sentence of a description, without its leading article, at most 20 words. */
vlp_status caption_from_sentence(const char *text, vlp_buf *out);

/* What a cleaned sentence is about: the words before its verb, "candy cane" of "candy cane is a
 * traditional christmas treat". The whole caption where there is no verb. */
vlp_status caption_subject(const char *sentence, vlp_buf *out);

/* English for a cleaned Italian or French caption; NULL when the glossary lacks it. */
const char *caption_translate(const char *cleaned);

/* The right spelling of one lower-case word, or the words that it runs together ("palmtree"); NULL
 * when it is fine. */
const char *caption_mend(const char *word);

/* Whether a title says nothing about its picture: the name of a whole collection. */
bool caption_is_collection(const char *title);

/* Whether a description is worth a caption: no address, no markup, two to twenty words. */
bool caption_is_description(const char *text);

/* Whether `word` is one of the words of a cleaned caption. */
bool caption_has_word(const char *caption, const char *word);

#endif
