/* Whether bytes are UTF-8, as Python decodes it. Asked without making a text of them, so that it is
 * quick and cannot fail for want of memory. */

#pragma once

#include "wire.h"

#include <string.h>

#define EIGHT_TOP_BITS UINT64_C(0x8080808080808080)

INTERNAL int is_text_beyond_ascii(const unsigned char *at, const unsigned char *end);

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
