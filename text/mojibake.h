/* UTF-8 that was read as Latin-1 or Windows-1252 ("schÃ¶n"). Private to text/. */
#ifndef VLP_TEXT_MOJIBAKE_H
#define VLP_TEXT_MOJIBAKE_H

#include <stddef.h>

/* text [len], well-formed, with such sequences read as they were meant, at most max bytes; never
 * longer than text. out is not text. Text that does not look damaged is left alone. */
size_t vlp_mojibake_undo(const char *text, size_t len, char *out, size_t max);

/* Windows-1252's byte of a character (undefined bytes are C1 controls, as in browsers), or -1; and
 * its character of a byte. */
int vlp_windows_1252_byte(unsigned code);
unsigned vlp_windows_1252_char(unsigned char byte);

#endif
