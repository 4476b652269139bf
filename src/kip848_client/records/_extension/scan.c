/* Records as rows of columns. */

#include "batch.h"
#include "columns.h"

#define COLUMN_BYTES_MAX (1 << 30) /* so that all positions are int32 */

/* How many records to make room for: not for what a header says, which may be damaged, but for what
 * can be in the bytes that are there. One at least, so that all bytes are looked at. */
static Py_ssize_t
records_at_most(const Batch *self, Py_ssize_t limit)
{
    Py_ssize_t possible = (self->end - self->at) / RECORD_BYTES_MIN;
    if (self->left < possible) {
        possible = (Py_ssize_t)self->left;
    }
    if (possible < 1) {
        possible = 1;
    }
    return limit < possible ? limit : possible;
}

/* How many were added, or -1. */
static Py_ssize_t
add_records(Batch *self, Columns *columns, Py_ssize_t limit)
{
    Py_ssize_t count = 0, wanted = records_at_most(self, limit);
    if (columns_reserve(columns, wanted) < 0) {
        return -1;
    }
    while (count < wanted) {
        Parsed parsed;
        const unsigned char *end;
        const char *why;
        Next next = find_next(self, &parsed, &end, &why);
        if (next == END || (next != FOUND && count > 0)) {
            break;
        }
        if (next == ODD) {
            raise_odd(self, &parsed, why);
            return -1;
        }
        if (next == BROKEN) {
            raise_broken(self, why);
            return -1;
        }
        if (columns_add(columns, &parsed, end) < 0) {
            return -1;
        }
        pass(self, end, parsed.offset);
        self->position = parsed.offset + 1;
        count++;
    }
    return count;
}

PyObject *
batch_scan(Batch *self, PyObject *args)
{
    Columns *columns;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "O!n", &ColumnsType, &columns, &limit) || is_busy(self)) {
        return NULL;
    }
    if (columns_bytes(columns) > COLUMN_BYTES_MAX - (self->end - self->at)) {
        PyErr_SetString(PyExc_OverflowError, "too much data");
        return NULL;
    }
    const unsigned char *at = self->at;
    long long left = self->left, position = self->position, place = self->place;
    Py_ssize_t rows = columns->rows, headers = columns->header_names.count;
    Py_ssize_t count = add_records(self, columns, limit);
    PyObject *added = count < 0 ? NULL : PyLong_FromSsize_t(count);
    if (added == NULL || (count > 0 && move_cursor(self, self->position) < 0)) {
        Py_XDECREF(added); /* the caller will have none of them */
        self->at = at;
        self->left = left;
        self->position = position;
        self->place = place;
        columns_cut(columns, rows, headers);
        return NULL;
    }
    return added;
}
