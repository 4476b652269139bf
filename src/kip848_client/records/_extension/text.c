/* UTF-8, where bytes are not ASCII, which nearly all names are. */

#include "text.h"

typedef struct {
    Py_ssize_t length;
    int is_valid;
} Unit;

static inline int
is_continuation(const unsigned char *at, const unsigned char *end)
{
    return at < end && (*at & 0xc0) == 0x80;
}

/* What there is at `at`: a character, or as many bytes as one U+FFFD stands for. That is the
 * beginning of a character up to the byte that does not continue it. Half a surrogate pair counts
 * as one, as in Java; in Python it does not. */
static Unit
unit_at(const unsigned char *at, const unsigned char *end)
{
    unsigned char first = *at;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    Py_ssize_t whole;
    if (first < 0x80) {
        return (Unit){1, 1};
    }
    if (first >= 0xc2 && first <= 0xdf) { /* 0xc0 and 0xc1 would be ASCII, said longer */
        whole = 2;
    }
    else if (first >= 0xe0 && first <= 0xef) {
        whole = 3;
        low = first == 0xe0 ? 0xa0 : low; /* there is a shorter way to say it */
    }
    else if (first >= 0xf0 && first <= 0xf4) {
        whole = 4;
        low = first == 0xf0 ? 0x90 : low;
        high = first == 0xf4 ? 0x8f : high; /* beyond Unicode */
    }
    else {
        return (Unit){1, 0};
    }
    if (end - at < 2 || at[1] < low || at[1] > high) {
        return (Unit){1, 0};
    }
    Py_ssize_t length = 2;
    while (length < whole && is_continuation(at + length, end)) {
        length++;
    }
    int is_surrogate = first == 0xed && at[1] >= 0xa0;
    return (Unit){length, length == whole && !is_surrogate};
}

int
is_text_beyond_ascii(const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        Unit unit = unit_at(at, end);
        if (!unit.is_valid) {
            return 0;
        }
        at += unit.length;
    }
    return 1;
}

Py_ssize_t
write_replaced(Bytes bytes, char *to)
{
    const unsigned char *at = bytes.at, *end = bytes.at + bytes.length;
    char *start = to;
    while (at < end) {
        Unit unit = unit_at(at, end);
        Py_ssize_t length = unit.is_valid ? unit.length : REPLACEMENT_BYTES;
        memcpy(to, unit.is_valid ? (const char *)at : REPLACEMENT, length);
        to += length;
        at += unit.length;
    }
    return to - start;
}

PyObject *
replaced_text(Bytes bytes)
{
    char *buffer = PyMem_Malloc(bytes.length * REPLACEMENT_BYTES);
    if (buffer == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *text = PyUnicode_DecodeUTF8(buffer, write_replaced(bytes, buffer), NULL);
    PyMem_Free(buffer);
    return text;
}
