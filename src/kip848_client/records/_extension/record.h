/* What a record is made of.
 *
 * A batch's payload is a row of records (KIP-98): varint length, int8 attributes, varint timestamp
 * delta, varint offset delta, varint key length and key, varint value length and value (length -1:
 * null), varint number of headers, and for each a key and a value in the same form.
 */

#pragma once

#include "text.h"
#include "wire.h"

#define RECORD_BYTES_MIN 7 /* of a record without key, value and headers */
#define HEADER_BYTES_MIN 2

typedef struct {
    int64_t offset;
    int64_t timestamp;
    Bytes key;
    Bytes value;
    Py_ssize_t header_count;
    const unsigned char *headers;
} Parsed;

/* Where the record at `at` ends; NULL with `why` set when there is none. Its timestamp and offset
 * are what its batch adds its own to. */
static inline const unsigned char *
read_record(const unsigned char *at, const unsigned char *batch_end, Parsed *parsed,
            const char **why)
{
    int64_t length, timestamp, offset, count; /* not in `parsed`: they stay in registers */
    at = read_varint(at, batch_end, &length);
    *why = "a record is longer than its batch";
    if (at == NULL || length < 0 || length > batch_end - at) {
        return NULL;
    }
    const unsigned char *end = at + length;
    *why = "a field of a record does not fit into it";
    /* attributes: none are in use, and the codec takes a varint */
    if (at == end || *at++ >= 0x80) {
        return NULL;
    }
    if ((at = read_varint(at, end, &timestamp)) == NULL ||
        (at = read_varint(at, end, &offset)) == NULL ||
        (at = read_bytes(at, end, &parsed->key)) == NULL ||
        (at = read_bytes(at, end, &parsed->value)) == NULL ||
        (at = read_varint(at, end, &count)) == NULL) {
        return NULL;
    }
    if (count < 0 || count > (end - at) / HEADER_BYTES_MIN) {
        return NULL;
    }
    parsed->timestamp = timestamp;
    parsed->offset = offset;
    parsed->header_count = (Py_ssize_t)count;
    parsed->headers = at;
    for (Py_ssize_t i = 0; i < count; i++) {
        Bytes key, value;
        if ((at = read_header(at, end, &key, &value)) == NULL) {
            return NULL;
        }
        if (!is_text(key)) {
            *why = "the key of a header is no UTF-8";
            return NULL;
        }
    }
    *why = "a record is longer than its fields";
    return at == end ? at : NULL;
}
