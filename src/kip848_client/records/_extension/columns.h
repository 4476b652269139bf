/* Columns: many records without an object for each. */

#pragma once

#include "bytes_column.h"
#include "record.h"

typedef struct {
    PyObject_HEAD
    Py_ssize_t rows;
    BytesColumn keys;
    BytesColumn values;
    BytesColumn header_names;
    BytesColumn header_values;
    Array offsets;     /* int64 */
    Array timestamps;  /* int64, ms */
    Array header_ends; /* int32: 0, then for each row how many headers there are up to it */
} Columns;

INTERNAL PyTypeObject ColumnsType;

/* Room for what does not depend on lengths. */
INTERNAL int columns_reserve(Columns *self, Py_ssize_t rows);

/* Take back all but the first `rows` with their headers. */
INTERNAL void columns_cut(Columns *self, Py_ssize_t rows, Py_ssize_t headers);

/* The headers of the row that comes next; nothing while no row has any. */
INTERNAL int columns_add_headers(Columns *self, const Parsed *parsed, const unsigned char *end);

static inline Py_ssize_t
columns_bytes(const Columns *self)
{
    return self->keys.data.used + self->values.data.used + self->header_names.data.used +
           self->header_values.data.used;
}

/* Add a row, for which there must be room. What it has added is taken back where memory is out in
 * the middle of it. */
static inline int
columns_add(Columns *self, const Parsed *parsed, const unsigned char *end)
{
    Py_ssize_t headers = self->header_names.count;
    if (bytes_column_add(&self->keys, parsed->key) < 0 ||
        bytes_column_add(&self->values, parsed->value) < 0 ||
        ((parsed->header_count || headers) && columns_add_headers(self, parsed, end) < 0)) {
        columns_cut(self, self->rows, headers);
        return -1;
    }
    array_put_int64(&self->offsets, parsed->offset);
    array_put_int64(&self->timestamps, parsed->timestamp);
    self->rows++;
    return 0;
}
