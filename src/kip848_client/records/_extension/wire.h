/* How bytes of the wire are read.
 *
 * All of them come from a broker and may be damaged: no position is used before it was compared
 * with the end, and no length before it was compared with what is left. Each reader returns where
 * it has stopped, or NULL for bytes that cannot be what is wanted.
 */

#pragma once

#include "internal.h"

#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10
#define NULL_LENGTH (-1)

typedef struct {
    const unsigned char *at;
    Py_ssize_t length; /* NULL_LENGTH: null */
} Bytes;

/* A number of at most so many bytes, before its zigzag is undone. Bits beyond 64 are lost. */
static inline const unsigned char *
read_raw(const unsigned char *at, const unsigned char *end, int bytes_max, uint64_t *raw)
{
    if (at < end && *at < 0x80) { /* nearly always */
        *raw = *at++;
        return at;
    }
    uint64_t found = 0;
    for (int shift = 0; at < end && shift < 7 * bytes_max; shift += 7) {
        unsigned char byte = *at++;
        found |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *raw = found;
            return at;
        }
    }
    return NULL;
}

/* As in Java bits beyond 32 are lost: five bytes have room for 35. */
static inline const unsigned char *
read_varint(const unsigned char *at, const unsigned char *end, int32_t *value)
{
    uint64_t found;
    at = read_raw(at, end, VARINT_BYTES_MAX, &found);
    if (at != NULL) {
        uint32_t raw = (uint32_t)found;
        *value = (int32_t)((raw >> 1) ^ (~(raw & 1) + 1)); /* zigzag */
    }
    return at;
}

static inline const unsigned char *
read_varlong(const unsigned char *at, const unsigned char *end, int64_t *value)
{
    uint64_t raw;
    at = read_raw(at, end, VARLONG_BYTES_MAX, &raw);
    if (at != NULL) {
        *value = (int64_t)((raw >> 1) ^ (~(raw & 1) + 1)); /* zigzag */
    }
    return at;
}

/* Bytes with their length before them. Any negative length is null, as in Java. */
static inline const unsigned char *
read_bytes(const unsigned char *at, const unsigned char *end, Bytes *found)
{
    int32_t length;
    at = read_varint(at, end, &length);
    if (at == NULL || length > end - at) {
        return NULL;
    }
    found->at = at;
    found->length = length < 0 ? NULL_LENGTH : length;
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
