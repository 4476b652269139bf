/* How bytes of the wire are read.
 *
 * All of them come from a broker and may be damaged: no position is used before it was compared
 * with the end, and no length before it was compared with what is left. Each reader returns where
 * it has stopped, or NULL for bytes that cannot be what is wanted.
 */

#pragma once

#include "internal.h"

#define VARINT_BYTES_MAX 10
#define NULL_LENGTH (-1)

typedef struct {
    const unsigned char *at;
    Py_ssize_t length; /* NULL_LENGTH: null */
} Bytes;

static inline const unsigned char *
read_varint(const unsigned char *at, const unsigned char *end, int64_t *value)
{
    uint64_t raw = 0;
    if (at < end && *at < 0x80) { /* nearly always */
        raw = *at++;
    }
    else {
        int shift = 0;
        for (;;) {
            if (at >= end || shift >= 7 * VARINT_BYTES_MAX) {
                return NULL;
            }
            unsigned char byte = *at++;
            raw |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80) {
                break;
            }
            shift += 7;
        }
    }
    *value = (int64_t)((raw >> 1) ^ (~(raw & 1) + 1)); /* zigzag */
    return at;
}

/* Bytes with their length before them. */
static inline const unsigned char *
read_bytes(const unsigned char *at, const unsigned char *end, Bytes *found)
{
    int64_t length;
    at = read_varint(at, end, &length);
    if (at == NULL || length < NULL_LENGTH || length > end - at) {
        return NULL;
    }
    found->at = at;
    found->length = (Py_ssize_t)length;
    return length > 0 ? at + length : at;
}

static inline const unsigned char *
read_header(const unsigned char *at, const unsigned char *end, Bytes *key, Bytes *value)
{
    at = read_bytes(at, end, key);
    if (at == NULL || key->length == NULL_LENGTH) {
        return NULL;
    }
    return read_bytes(at, end, value);
}
