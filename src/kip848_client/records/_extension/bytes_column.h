/* A column of bytes as Arrow has it: all of them one after the other, and where each ends. */

#pragma once

#include "array.h"
#include "text.h"

typedef struct {
    Array data;
    Array ends;  /* int32: 0, then the end of each */
    Array nulls; /* int32: which ones are null */
    Py_ssize_t count;
} BytesColumn;

INTERNAL int bytes_column_init(BytesColumn *column);
INTERNAL void bytes_column_free(BytesColumn *column);

/* Take back all but the first `count`. */
INTERNAL void bytes_column_cut(BytesColumn *column, Py_ssize_t count);

/* One of them as an object, the next after those before. `null` counts the nulls before it. */
INTERNAL PyObject *bytes_column_item(const BytesColumn *column, Py_ssize_t index, Py_ssize_t *null);

INTERNAL PyObject *bytes_column_list(const BytesColumn *column);

/* (count, nulls, bitmap or None, ends, data), as Arrow wants it. */
INTERNAL PyObject *bytes_column_buffers(const BytesColumn *column);

/* Add bytes that are not UTF-8 as text that is: see text.h. */
INTERNAL int bytes_column_add_replaced(BytesColumn *column, Bytes bytes);

static inline int
bytes_column_add(BytesColumn *column, Bytes bytes)
{
    if (array_reserve(&column->ends, sizeof(int32_t)) < 0) {
        return -1;
    }
    if (bytes.length > 0) {
        if (array_reserve(&column->data, bytes.length) < 0) {
            return -1;
        }
        memcpy(array_end(&column->data), bytes.at, bytes.length);
        column->data.used += bytes.length;
    }
    else if (bytes.length == NULL_LENGTH) {
        if (array_reserve(&column->nulls, sizeof(int32_t)) < 0) {
            return -1;
        }
        array_put_int32(&column->nulls, (int32_t)column->count);
    }
    array_put_int32(&column->ends, (int32_t)column->data.used);
    column->count++;
    return 0;
}
