/* A batch that is being read: where it is, what its header says, who is told. */

#pragma once

#include "record.h"

typedef struct {
    PyObject_HEAD
    PyObject *data; /* bytes */
    const unsigned char *start;
    const unsigned char *at;
    const unsigned char *end;
    long long left; /* records that were not looked at, as the header says */
    long long base_offset;
    long long next_offset;
    long long timestamp; /* what deltas are added to; or, with log_append_time, all there is */
    long long position;  /* records before it are not handed out */
    long long place;     /* after the records that were passed: where one that is refused is */
    int log_append_time;
    int epoch_told;
    int busy; /* what others have written runs: a deserializer */
    PyObject *cursor;
    PyObject *epoch;
    PyObject *topic;
    PyObject *partition;
    PyObject *timestamp_type;
    PyObject *record_type;
    PyObject *key_deserializer; /* or None */
    PyObject *value_deserializer;
    PyObject *refused; /* raises for a Record of bytes and what a deserializer raised */
    PyObject *odd;     /* raises for an invalid record: see raise_odd */
    PyObject *broken;  /* raises for a text that says what is wrong with the bytes */
    PyObject *last_timestamp; /* neighbours often share it */
    int64_t last_timestamp_value;
} Batch;

INTERNAL PyTypeObject BatchType;
/* Made once. */
INTERNAL PyObject *consumed_name, *consumed_epoch_name, *no_headers, *cancelled_error;

/* Raise what an application sees of bytes that are no records. */
INTERNAL void raise_broken(Batch *self, const char *why);

/* The same of one record: its place, why, all its bytes, and a Record if its fields are known. */
INTERNAL void raise_odd(Batch *self, const Parsed *parsed, const char *why);

/* A Record whose key and value are bytes. */
INTERNAL PyObject *raw_record(Batch *self, const Parsed *parsed);

/* Whether a deserializer asks for the record that it is to deserialize, or those after it: that is
 * an error of its own, and then set. */
INTERNAL int is_busy(const Batch *self);

/* next(batch): a Record. */
INTERNAL PyObject *batch_next(Batch *self);

/* batch.scan(columns, limit): add at most `limit` records to columns. How many; a record that is no
 * good raises only when there is none before it. What raises has added nothing. */
INTERNAL PyObject *batch_scan(Batch *self, PyObject *args);

/* The record at `at` with its own timestamp and offset, and where it ends. */
static inline const unsigned char *
parse(const Batch *self, const unsigned char *at, Parsed *parsed, const char **why)
{
    at = read_record(at, self->end, parsed, why);
    if (at == NULL) {
        return NULL;
    }
    /* as unsigned: what overflows wraps, as it does for the producer */
    parsed->timestamp = self->log_append_time
                            ? self->timestamp
                            : (int64_t)((uint64_t)self->timestamp + (uint64_t)parsed->timestamp);
    parsed->offset = (int64_t)((uint64_t)self->base_offset + (uint64_t)parsed->offset);
    if (parsed->offset >= self->next_offset) {
        *why = "its offset is beyond the end of its batch";
        parsed->fields_known = 1;
        return NULL;
    }
    return at;
}

/* FOUND: `end` is where it ends. ODD: it is an invalid record. */
typedef enum { FOUND, END, ODD, BROKEN } Next;

/* The record before `end` is behind us. */
static inline void
pass(Batch *self, const unsigned char *end, int64_t offset)
{
    self->at = end;
    self->left--;
    if (offset >= self->place && offset < self->next_offset) {
        self->place = offset + 1;
    }
}

/* The next record that is to be handed out. */
static inline Next
find_next(Batch *self, Parsed *parsed, const unsigned char **end, const char **why)
{
    while (self->left > 0) {
        *end = parse(self, self->at, parsed, why);
        if (*end == NULL) {
            if (parsed->end == NULL) {
                return BROKEN;
            }
            if (self->place >= self->position && self->place < self->next_offset) {
                return ODD;
            }
            pass(self, parsed->end, self->place);
            continue;
        }
        if (parsed->offset >= self->position) {
            return FOUND;
        }
        pass(self, *end, parsed->offset);
    }
    *why = "there are bytes after the last record";
    return self->at == self->end ? END : BROKEN;
}

/* What is before `position` was handed out. */
static inline int
move_cursor(Batch *self, int64_t position)
{
    if (self->cursor == NULL) {
        return 0;
    }
    PyObject *consumed = PyLong_FromLongLong(position);
    if (consumed == NULL) {
        return -1;
    }
    int failed = PyObject_SetAttr(self->cursor, consumed_name, consumed);
    Py_DECREF(consumed);
    if (failed == 0 && !self->epoch_told) {
        failed = PyObject_SetAttr(self->cursor, consumed_epoch_name, self->epoch);
        self->epoch_told = failed == 0;
    }
    return failed;
}
