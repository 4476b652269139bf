/* Whether bytes are UTF-8, where they are not ASCII, which nearly all are. */

#include "text.h"

static int
is_continuation(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

int
is_text_beyond_ascii(const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        unsigned char first = *at++;
        unsigned char low = 0x80, high = 0xbf; /* of the second byte */
        Py_ssize_t more;
        if (first < 0x80) {
            continue;
        }
        if (first >= 0xc2 && first <= 0xdf) { /* 0xc0 and 0xc1 would be ASCII, said longer */
            more = 1;
        }
        else if (first >= 0xe0 && first <= 0xef) {
            more = 2;
            low = first == 0xe0 ? 0xa0 : low;   /* there is a shorter way to say it */
            high = first == 0xed ? 0x9f : high; /* surrogates */
        }
        else if (first >= 0xf0 && first <= 0xf4) {
            more = 3;
            low = first == 0xf0 ? 0x90 : low;
            high = first == 0xf4 ? 0x8f : high; /* beyond Unicode */
        }
        else {
            return 0;
        }
        if (end - at < more || !is_continuation(*at, low, high)) {
            return 0;
        }
        for (Py_ssize_t i = 1; i < more; i++) {
            if (!is_continuation(at[i], 0x80, 0xbf)) {
                return 0;
            }
        }
        at += more;
    }
    return 1;
}
