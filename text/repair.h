/* Repairs of text that went through the wrong encoding or a word processor, in the order and with
 * the rules of ftfy.fix_text (Speer, 2019), which OpenAI's CLIP applies to captions: HTML entities
 * where no "<" is near, UTF-8 that was read as Latin-1 or Windows-1252, C1 controls, Latin
 * ligatures, full- and half-width forms, curly quotes, line breaks, terminal escapes, control
 * characters, NFC. Mix-ups with other code pages (Windows-1250, 1251, MacRoman and so on) are left
 * as they are. Private to text/. */
#ifndef VLP_TEXT_REPAIR_H
#define VLP_TEXT_REPAIR_H

#include <stddef.h>

enum { VLP_REPAIR_MAX = 1 << 16 };

/* text [len] is well-formed and at most VLP_REPAIR_MAX bytes; so is what is written. out is not
 * text. Allocates nothing. */
size_t vlp_text_repair(const char *text, size_t len, char *out);

#endif
