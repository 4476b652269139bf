/* Bytes that should be UTF-8: the names of headers. Brokers do not check them, so any bytes come.
 *
 * What is not UTF-8 becomes U+FFFD, one for each of the sequences that Java replaces: see
 * _header_names.py, which does the same in Python. */

#pragma once

#include "wire.h"

#include <string.h>

#define EIGHT_TOP_BITS UINT64_C(0x8080808080808080)

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD in UTF-8 */
#define REPLACEMENT_BYTES 3       /* for at least one byte that is replaced */

INTERNAL int is_text_beyond_ascii(const unsigned char *at, const unsigned char *end);

/* Write the bytes as UTF-8, for which there must be room, REPLACEMENT_BYTES for each of them. How
 * many bytes were written. */
INTERNAL Py_ssize_t write_replaced(Bytes bytes, char *to);

/* A str. */
INTERNAL PyObject *replaced_text(Bytes bytes);

static inline int
is_text(Bytes bytes)
{
    const unsigned char *at = bytes.at, *end = bytes.at + bytes.length;
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, sizeof eight);
        if (eight & EIGHT_TOP_BITS) {
            break;
        }
    }
    while (at < end && *at < 0x80) {
        at++;
    }
    return at == end || is_text_beyond_ascii(at, end);
}
