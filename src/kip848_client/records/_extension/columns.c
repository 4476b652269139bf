/* The type Columns: making it, filling it, looking at it. */

#include "columns.h"

#include <stddef.h>
#include <structmember.h>

static PyObject *
columns_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"expected_bytes", NULL};
    Py_ssize_t expected = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n", names, &expected)) {
        return NULL;
    }
    Columns *self = (Columns *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    int failed = bytes_column_init(&self->keys) < 0;
    failed |= bytes_column_init(&self->values) < 0;
    failed |= bytes_column_init(&self->header_names) < 0;
    failed |= bytes_column_init(&self->header_values) < 0;
    failed |= array_init(&self->offsets) < 0;
    failed |= array_init(&self->timestamps) < 0;
    failed |= array_init(&self->header_ends) < 0;
    if (failed || (expected > 0 && array_reserve(&self->values.data, expected) < 0)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
columns_dealloc(Columns *self)
{
    PyTypeObject *type = Py_TYPE(self);
    bytes_column_free(&self->keys);
    bytes_column_free(&self->values);
    bytes_column_free(&self->header_names);
    bytes_column_free(&self->header_values);
    Py_XDECREF(self->offsets.bytes);
    Py_XDECREF(self->timestamps.bytes);
    Py_XDECREF(self->header_ends.bytes);
    type->tp_free((PyObject *)self);
}

static Py_ssize_t
columns_length(PyObject *self)
{
    return ((Columns *)self)->rows;
}

void
columns_cut(Columns *self, Py_ssize_t rows, Py_ssize_t headers)
{
    self->rows = rows;
    self->offsets.used = rows * sizeof(int64_t);
    self->timestamps.used = rows * sizeof(int64_t);
    bytes_column_cut(&self->keys, rows);
    bytes_column_cut(&self->values, rows);
    bytes_column_cut(&self->header_names, headers);
    bytes_column_cut(&self->header_values, headers);
    Py_ssize_t known = self->header_ends.used / (Py_ssize_t)sizeof(int32_t);
    if (known > rows + 1) {
        self->header_ends.used = (rows + 1) * sizeof(int32_t);
    }
}

int
columns_reserve(Columns *self, Py_ssize_t rows)
{
    if (array_reserve(&self->keys.ends, rows * sizeof(int32_t)) < 0 ||
        array_reserve(&self->values.ends, rows * sizeof(int32_t)) < 0 ||
        array_reserve(&self->offsets, rows * sizeof(int64_t)) < 0 ||
        array_reserve(&self->timestamps, rows * sizeof(int64_t)) < 0) {
        return -1;
    }
    return 0;
}

static int
add_name(BytesColumn *names, Bytes name)
{
    return is_text(name) ? bytes_column_add(names, name) : bytes_column_add_replaced(names, name);
}

int
columns_add_headers(Columns *self, const Parsed *parsed, const unsigned char *end)
{
    const unsigned char *at = parsed->headers;
    for (Py_ssize_t i = 0; i < parsed->header_count; i++) {
        Bytes key = {at, 0}, value = {at, 0};
        at = read_header(at, end, &key, &value);
        if (add_name(&self->header_names, key) < 0 ||
            bytes_column_add(&self->header_values, value) < 0) {
            return -1;
        }
    }
    if (self->header_names.count == 0) {
        return 0;
    }
    Py_ssize_t known = self->header_ends.used / (Py_ssize_t)sizeof(int32_t);
    Py_ssize_t wanted = self->rows + 2;
    if (array_reserve(&self->header_ends, (wanted - known) * sizeof(int32_t)) < 0) {
        return -1;
    }
    for (; known < wanted - 1; known++) { /* the first headers of all: none before */
        array_put_int32(&self->header_ends, 0);
    }
    array_put_int32(&self->header_ends, (int32_t)self->header_names.count);
    return 0;
}

static PyObject *
columns_keys(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_list(&self->keys);
}

static PyObject *
columns_values(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_list(&self->values);
}

static PyObject *
header_pair(const Columns *self, Py_ssize_t index, Py_ssize_t *null)
{
    const BytesColumn *names = &self->header_names;
    int32_t begin = array_int32(&names->ends, index);
    int32_t end = array_int32(&names->ends, index + 1);
    PyObject *name =
        PyUnicode_DecodeUTF8(PyByteArray_AS_STRING(names->data.bytes) + begin, end - begin, NULL);
    PyObject *value = name == NULL ? NULL : bytes_column_item(&self->header_values, index, null);
    PyObject *pair = value == NULL ? NULL : PyTuple_Pack(2, name, value);
    Py_XDECREF(name);
    Py_XDECREF(value);
    return pair;
}

/* For each row a tuple of pairs. */
static PyObject *
columns_headers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(self->rows);
    if (list == NULL) {
        return NULL;
    }
    Py_ssize_t index = 0, null = 0;
    for (Py_ssize_t row = 0; row < self->rows; row++) {
        Py_ssize_t end = self->header_names.count ? array_int32(&self->header_ends, row + 1) : 0;
        PyObject *headers = PyTuple_New(end - index);
        if (headers == NULL) {
            goto failed;
        }
        PyList_SET_ITEM(list, row, headers);
        for (Py_ssize_t i = 0; index < end; i++, index++) {
            PyObject *pair = header_pair(self, index, &null);
            if (pair == NULL) {
                goto failed;
            }
            PyTuple_SET_ITEM(headers, i, pair);
        }
    }
    return list;
failed:
    Py_DECREF(list);
    return NULL;
}

/* A bitmap of the rows that have headers. */
static PyObject *
columns_rows_with_headers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    Py_ssize_t size = (self->rows + 7) / 8;
    PyObject *bitmap = PyBytes_FromStringAndSize(NULL, size);
    if (bitmap == NULL) {
        return NULL;
    }
    unsigned char *bits = (unsigned char *)PyBytes_AS_STRING(bitmap);
    memset(bits, 0, size);
    int32_t before = 0;
    for (Py_ssize_t row = 0; self->header_names.count && row < self->rows; row++) {
        int32_t end = array_int32(&self->header_ends, row + 1);
        bits[row / 8] |= (unsigned char)((end > before) << (row % 8));
        before = end;
    }
    return bitmap;
}

static PyObject *
bitmap_of_ones(Py_ssize_t bits)
{
    PyObject *bitmap = PyBytes_FromStringAndSize(NULL, (bits + 7) / 8);
    if (bitmap != NULL) {
        memset(PyBytes_AS_STRING(bitmap), 0xff, (bits + 7) / 8);
    }
    return bitmap;
}

/* (nulls, bitmap or None, timestamps in microseconds). One that microseconds cannot say is null:
 * another number would be another time. */
static PyObject *
columns_microseconds(Columns *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, self->rows * sizeof(int64_t));
    if (made == NULL) {
        return NULL;
    }
    const char *from = PyByteArray_AS_STRING(self->timestamps.bytes);
    char *to = PyBytes_AS_STRING(made);
    PyObject *bitmap = NULL;
    Py_ssize_t nulls = 0;
    for (Py_ssize_t row = 0; row < self->rows; row++) {
        int64_t value;
        memcpy(&value, from + row * sizeof value, sizeof value);
        if (value > INT64_MAX / 1000 || value < INT64_MIN / 1000) {
            if (bitmap == NULL && (bitmap = bitmap_of_ones(self->rows)) == NULL) {
                Py_DECREF(made);
                return NULL;
            }
            ((unsigned char *)PyBytes_AS_STRING(bitmap))[row / 8] &=
                (unsigned char)~(1u << (row % 8));
            nulls++;
            value = 0;
        }
        value *= 1000;
        memcpy(to + row * sizeof value, &value, sizeof value);
    }
    if (bitmap == NULL) {
        bitmap = Py_NewRef(Py_None);
    }
    return Py_BuildValue("nNN", nulls, bitmap, made);
}

static PyObject *
columns_key_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_buffers(&self->keys);
}

static PyObject *
columns_value_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_buffers(&self->values);
}

static PyObject *
columns_header_name_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_buffers(&self->header_names);
}

static PyObject *
columns_header_value_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return bytes_column_buffers(&self->header_values);
}

static PyObject *
columns_size_bytes(Columns *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(columns_bytes(self));
}

static PyGetSetDef columns_getset[] = {
    {"size_bytes", (getter)columns_size_bytes, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef columns_methods[] = {
    {"keys", (PyCFunction)columns_keys, METH_NOARGS, NULL},
    {"values", (PyCFunction)columns_values, METH_NOARGS, NULL},
    {"headers", (PyCFunction)columns_headers, METH_NOARGS, NULL},
    {"rows_with_headers", (PyCFunction)columns_rows_with_headers, METH_NOARGS, NULL},
    {"microseconds", (PyCFunction)columns_microseconds, METH_NOARGS, NULL},
    {"key_buffers", (PyCFunction)columns_key_buffers, METH_NOARGS, NULL},
    {"value_buffers", (PyCFunction)columns_value_buffers, METH_NOARGS, NULL},
    {"header_name_buffers", (PyCFunction)columns_header_name_buffers, METH_NOARGS, NULL},
    {"header_value_buffers", (PyCFunction)columns_header_value_buffers, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef columns_members[] = {
    {"header_count", T_PYSSIZET, offsetof(Columns, header_names.count), READONLY, NULL},
    {"offsets", T_OBJECT, offsetof(Columns, offsets.bytes), READONLY, NULL},
    {"timestamps", T_OBJECT, offsetof(Columns, timestamps.bytes), READONLY, NULL},
    {"header_ends", T_OBJECT, offsetof(Columns, header_ends.bytes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PySequenceMethods columns_as_sequence = {.sq_length = columns_length};

PyTypeObject ColumnsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kip848_client.records._scan.Columns",
    .tp_basicsize = sizeof(Columns),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = columns_new,
    .tp_dealloc = (destructor)columns_dealloc,
    .tp_methods = columns_methods,
    .tp_members = columns_members,
    .tp_getset = columns_getset,
    .tp_as_sequence = &columns_as_sequence,
};
