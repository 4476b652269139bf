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
    /* Of a record that was refused: */
    const unsigned char *end; /* where it ends; NULL where that is not known */
    int fields_known;         /* all of the above are */
} Parsed;

/* Where the record at `at` ends; NULL with `why` set where its fields cannot be told apart. Its
 * timestamp and offset are what its batch adds its own to.
 *
 * Taken is what Java's consumer takes: any attributes, of which none are in use, lengths below -1,
 * numbers in more bytes than they need, and header names that are not UTF-8. */
static inline const unsigned char *
read_record(const unsigned char *at, const unsigned char *batch_end, Parsed *parsed,
            const char **why)
{
    int64_t timestamp; /* not in `parsed`: they stay in registers */
    int32_t length, offset, count;
    at = read_varint(at, batch_end, &length);
    parsed->fields_known = 0;
    *why = "a record is longer than its batch";
    if (at == NULL || length < 0 || length > batch_end - at) {
        parsed->end = NULL;
        return NULL;
    }
    const unsigned char *end = at + length;
    parsed->end = end;
    *why = "a field of the record does not fit into it";
    if (at == end) {
        return NULL;
    }
    at++; /* attributes */
    if ((at = read_varlong(at, end, &timestamp)) == NULL ||
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
    parsed->header_count = count;
    parsed->headers = at;
    for (int32_t i = 0; i < count; i++) {
        Bytes key, value;
        if ((at = read_header(at, end, &key, &value)) == NULL) {
            return NULL;
        }
    }
    *why = "the record is longer than its fields";
    return at == end ? at : NULL;
}
