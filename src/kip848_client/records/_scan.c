/* Reads the records of one batch: as Record objects, one at a time, or as columns.
 *
 * Everything here is optional: where this file is not built, _list_batch.py does the same, slower.
 * All bytes come from a broker and may be damaged: no position is used before it was compared with
 * the end, and no length before it was compared with what is left.
 *
 * A batch's payload is a row of records (KIP-98): varint length, int8 attributes, varint timestamp
 * delta, varint offset delta, varint key length and key, varint value length and value (length -1:
 * null), varint number of headers, and for each a key and a value in the same form.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>

#define EDITION 3 /* grows with every change that _scanned.py sees; it refuses another one */
#define RECORD_BYTES_MIN 7 /* of a record without key, value and headers */
#define HEADER_BYTES_MIN 2
#define FIELDS 11 /* of Record */
#define VARINT_BYTES_MAX 10
#define NULL_LENGTH (-1)
#define DATA_BYTES_MAX (1 << 29)
#define COLUMN_BYTES_MAX (1 << 30) /* so that all positions are int32 */

typedef struct {
    const unsigned char *at;
    Py_ssize_t length; /* NULL_LENGTH: null */
} Bytes;

typedef struct {
    int64_t offset;
    int64_t timestamp;
    Bytes key;
    Bytes value;
    Py_ssize_t header_count;
    const unsigned char *headers;
} Parsed;

/* ---- bytes ------------------------------------------------------------------------------------ */

/* Each reader returns where it has stopped, or NULL for bytes that cannot be what is wanted. */

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

static const unsigned char *
read_header(const unsigned char *at, const unsigned char *end, Bytes *key, Bytes *value)
{
    at = read_bytes(at, end, key);
    if (at == NULL || key->length == NULL_LENGTH) {
        return NULL;
    }
    return read_bytes(at, end, value);
}

static int
is_text(Bytes bytes)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes.at, bytes.length, NULL);
    if (text == NULL) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(text);
    return 1;
}

/* ---- objects ---------------------------------------------------------------------------------- */

static PyObject *
object_of(Bytes bytes)
{
    if (bytes.length == NULL_LENGTH) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)bytes.at, bytes.length);
}

/* A tuple of (str, bytes or None) pairs, of headers that were looked at before. */
static PyObject *
headers_of(const unsigned char *at, const unsigned char *end, Py_ssize_t count)
{
    PyObject *headers = PyTuple_New(count);
    if (headers == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Bytes key, value;
        at = read_header(at, end, &key, &value);
        if (at == NULL) { /* cannot be: it was looked at before */
            PyErr_SetString(PyExc_ValueError, "headers changed");
            goto failed;
        }
        PyObject *pair = PyTuple_New(2);
        if (pair == NULL) {
            goto failed;
        }
        PyTuple_SET_ITEM(headers, i, pair);
        PyObject *name = PyUnicode_DecodeUTF8((const char *)key.at, key.length, NULL);
        if (name == NULL) {
            goto failed;
        }
        PyTuple_SET_ITEM(pair, 0, name);
        PyObject *content = object_of(value);
        if (content == NULL) {
            goto failed;
        }
        PyTuple_SET_ITEM(pair, 1, content);
        PyObject_GC_UnTrack(pair);
    }
    PyObject_GC_UnTrack(headers);
    return headers;
failed:
    Py_DECREF(headers);
    return NULL;
}

/* ---- columns ---------------------------------------------------------------------------------- */

/* A growing array in a bytearray, which pyarrow can look at without a copy. */
typedef struct {
    PyObject *bytes;
    Py_ssize_t used;
} Array;

static int
array_init(Array *array)
{
    array->used = 0;
    array->bytes = PyByteArray_FromStringAndSize(NULL, 0);
    return array->bytes == NULL ? -1 : 0;
}

/* Room for so many bytes more. Fails, as it must, while somebody looks at the bytes. */
static int
array_grow(Array *array, Py_ssize_t more)
{
    Py_ssize_t size = PyByteArray_GET_SIZE(array->bytes);
    if (more > PY_SSIZE_T_MAX / 4 - array->used) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t wanted = array->used + more;
    if (array->used > 0 && wanted < 2 * size) {
        wanted = 2 * size;
    }
    return PyByteArray_Resize(array->bytes, wanted);
}

static inline int
array_reserve(Array *array, Py_ssize_t more)
{
    return more <= PyByteArray_GET_SIZE(array->bytes) - array->used ? 0 : array_grow(array, more);
}

static inline char *
array_end(Array *array)
{
    return PyByteArray_AS_STRING(array->bytes) + array->used;
}

static inline void
array_put_int32(Array *array, int32_t value)
{
    memcpy(array_end(array), &value, sizeof value);
    array->used += sizeof value;
}

static inline void
array_put_int64(Array *array, int64_t value)
{
    memcpy(array_end(array), &value, sizeof value);
    array->used += sizeof value;
}

static inline int32_t
array_int32(const Array *array, Py_ssize_t index)
{
    int32_t value;
    memcpy(&value, PyByteArray_AS_STRING(array->bytes) + index * sizeof value, sizeof value);
    return value;
}

/* A column of bytes as Arrow has it: all of them one after the other, and where each ends. */
typedef struct {
    Array data;
    Array ends;  /* int32: 0, then the end of each */
    Array nulls; /* int32: which ones are null */
    Py_ssize_t count;
} Strings;

static int
strings_init(Strings *strings)
{
    strings->count = 0;
    int failed = array_init(&strings->data) < 0;
    failed |= array_init(&strings->ends) < 0;
    failed |= array_init(&strings->nulls) < 0;
    if (failed || array_reserve(&strings->ends, sizeof(int32_t)) < 0) {
        return -1;
    }
    array_put_int32(&strings->ends, 0);
    return 0;
}

static void
strings_free(Strings *strings)
{
    Py_XDECREF(strings->data.bytes);
    Py_XDECREF(strings->ends.bytes);
    Py_XDECREF(strings->nulls.bytes);
}

static void
strings_cut(Strings *strings, Py_ssize_t count)
{
    strings->count = count;
    strings->ends.used = (count + 1) * sizeof(int32_t);
    strings->data.used = array_int32(&strings->ends, count);
    Py_ssize_t nulls = strings->nulls.used / (Py_ssize_t)sizeof(int32_t);
    while (nulls > 0 && array_int32(&strings->nulls, nulls - 1) >= count) {
        nulls--;
    }
    strings->nulls.used = nulls * sizeof(int32_t);
}

static inline int
strings_add(Strings *strings, Bytes bytes)
{
    if (array_reserve(&strings->ends, sizeof(int32_t)) < 0) {
        return -1;
    }
    if (bytes.length > 0) {
        if (array_reserve(&strings->data, bytes.length) < 0) {
            return -1;
        }
        memcpy(array_end(&strings->data), bytes.at, bytes.length);
        strings->data.used += bytes.length;
    }
    else if (bytes.length == NULL_LENGTH) {
        if (array_reserve(&strings->nulls, sizeof(int32_t)) < 0) {
            return -1;
        }
        array_put_int32(&strings->nulls, (int32_t)strings->count);
    }
    array_put_int32(&strings->ends, (int32_t)strings->data.used);
    strings->count++;
    return 0;
}

/* One of them as an object, the next after those before. `null` counts the nulls before it. */
static PyObject *
strings_item(const Strings *strings, Py_ssize_t index, Py_ssize_t *null)
{
    if (*null < strings->nulls.used / (Py_ssize_t)sizeof(int32_t) &&
        array_int32(&strings->nulls, *null) == index) {
        (*null)++;
        Py_RETURN_NONE;
    }
    int32_t begin = array_int32(&strings->ends, index);
    int32_t end = array_int32(&strings->ends, index + 1);
    return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(strings->data.bytes) + begin,
                                     end - begin);
}

static PyObject *
strings_list(const Strings *strings)
{
    PyObject *list = PyList_New(strings->count);
    Py_ssize_t null = 0;
    for (Py_ssize_t i = 0; list != NULL && i < strings->count; i++) {
        PyObject *item = strings_item(strings, i, &null);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* (count, nulls, bitmap or None, ends, data), as Arrow wants it. */
static PyObject *
strings_buffers(const Strings *strings)
{
    Py_ssize_t nulls = strings->nulls.used / (Py_ssize_t)sizeof(int32_t);
    PyObject *bitmap;
    if (nulls == 0) {
        bitmap = Py_NewRef(Py_None);
    }
    else {
        Py_ssize_t size = (strings->count + 7) / 8;
        bitmap = PyBytes_FromStringAndSize(NULL, size);
        if (bitmap == NULL) {
            return NULL;
        }
        unsigned char *bits = (unsigned char *)PyBytes_AS_STRING(bitmap);
        memset(bits, 0xff, size);
        for (Py_ssize_t i = 0; i < nulls; i++) {
            int32_t index = array_int32(&strings->nulls, i);
            bits[index / 8] &= (unsigned char)~(1u << (index % 8));
        }
    }
    return Py_BuildValue("nnNOO", strings->count, nulls, bitmap, strings->ends.bytes,
                         strings->data.bytes);
}

typedef struct {
    PyObject_HEAD
    Py_ssize_t rows;
    Strings keys;
    Strings values;
    Strings header_names;
    Strings header_values;
    Array offsets;     /* int64 */
    Array timestamps;  /* int64, ms */
    Array header_ends; /* int32: 0, then for each row how many headers there are up to it */
} Columns;

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
    int failed = strings_init(&self->keys) < 0;
    failed |= strings_init(&self->values) < 0;
    failed |= strings_init(&self->header_names) < 0;
    failed |= strings_init(&self->header_values) < 0;
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
    strings_free(&self->keys);
    strings_free(&self->values);
    strings_free(&self->header_names);
    strings_free(&self->header_values);
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

/* What a record added is taken back where memory is out in the middle of it. */
static void
columns_cut(Columns *self, Py_ssize_t rows, Py_ssize_t headers)
{
    strings_cut(&self->keys, rows);
    strings_cut(&self->values, rows);
    strings_cut(&self->header_names, headers);
    strings_cut(&self->header_values, headers);
    Py_ssize_t known = self->header_ends.used / (Py_ssize_t)sizeof(int32_t);
    if (known > rows + 1) {
        self->header_ends.used = (rows + 1) * sizeof(int32_t);
    }
}

/* Room for what does not depend on lengths. */
static int
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

/* The headers of the row that comes next; nothing while no row has any. */
static int
columns_add_headers(Columns *self, const Parsed *parsed, const unsigned char *end)
{
    const unsigned char *at = parsed->headers;
    for (Py_ssize_t i = 0; i < parsed->header_count; i++) {
        Bytes key = {at, 0}, value = {at, 0};
        at = read_header(at, end, &key, &value);
        if (strings_add(&self->header_names, key) < 0 ||
            strings_add(&self->header_values, value) < 0) {
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

/* Needs room for a row. */
static inline int
columns_add(Columns *self, const Parsed *parsed, const unsigned char *end)
{
    Py_ssize_t headers = self->header_names.count;
    if (strings_add(&self->keys, parsed->key) < 0 ||
        strings_add(&self->values, parsed->value) < 0 ||
        ((parsed->header_count || headers) && columns_add_headers(self, parsed, end) < 0)) {
        columns_cut(self, self->rows, headers);
        return -1;
    }
    array_put_int64(&self->offsets, parsed->offset);
    array_put_int64(&self->timestamps, parsed->timestamp);
    self->rows++;
    return 0;
}

static PyObject *
columns_keys(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_list(&self->keys);
}

static PyObject *
columns_values(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_list(&self->values);
}

static PyObject *
header_pair(const Columns *self, Py_ssize_t index, Py_ssize_t *null)
{
    const Strings *names = &self->header_names;
    int32_t begin = array_int32(&names->ends, index);
    int32_t end = array_int32(&names->ends, index + 1);
    PyObject *name =
        PyUnicode_DecodeUTF8(PyByteArray_AS_STRING(names->data.bytes) + begin, end - begin, NULL);
    PyObject *value = name == NULL ? NULL : strings_item(&self->header_values, index, null);
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

/* The timestamps in microseconds. As unsigned: what is beyond them wraps, as Arrow's own cast does. */
static PyObject *
columns_microseconds(Columns *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, self->rows * sizeof(int64_t));
    if (made == NULL) {
        return NULL;
    }
    const char *from = PyByteArray_AS_STRING(self->timestamps.bytes);
    char *to = PyBytes_AS_STRING(made);
    for (Py_ssize_t row = 0; row < self->rows; row++) {
        uint64_t value;
        memcpy(&value, from + row * sizeof value, sizeof value);
        value *= 1000;
        memcpy(to + row * sizeof value, &value, sizeof value);
    }
    return made;
}

static PyObject *
columns_key_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_buffers(&self->keys);
}

static PyObject *
columns_value_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_buffers(&self->values);
}

static PyObject *
columns_header_name_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_buffers(&self->header_names);
}

static PyObject *
columns_header_value_buffers(Columns *self, PyObject *Py_UNUSED(ignored))
{
    return strings_buffers(&self->header_values);
}

static Py_ssize_t
columns_bytes(const Columns *self)
{
    return self->keys.data.used + self->values.data.used + self->header_names.data.used +
           self->header_values.data.used;
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

static PyTypeObject ColumnsType = {
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

/* ---- a batch ---------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *data; /* bytes */
    const unsigned char *start;
    const unsigned char *at;
    const unsigned char *end;
    int64_t left; /* records that were not looked at, as the header says */
    int64_t base_offset;
    int64_t next_offset;
    int64_t timestamp;   /* what deltas are added to; or, with log_append_time, all there is */
    int64_t position;    /* records before it are not handed out */
    int log_append_time;
    int epoch_told;
    PyObject *cursor;
    PyObject *epoch;
    PyObject *topic;
    PyObject *partition;
    PyObject *timestamp_type;
    PyObject *record_type;
    PyObject *key_deserializer; /* or None */
    PyObject *value_deserializer;
    PyObject *refused; /* raises for an offset and what a deserializer raised */
    PyObject *broken;  /* raises for a text that says what is wrong with the bytes */
    PyObject *last_timestamp; /* neighbours often share it */
    int64_t last_timestamp_value;
} Batch;

static PyObject *consumed_name, *consumed_epoch_name, *no_headers;

static PyObject *
batch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data",
                            "start",
                            "end",
                            "records",
                            "base_offset",
                            "next_offset",
                            "timestamp",
                            "log_append_time",
                            "position",
                            "cursor",
                            "epoch",
                            "topic",
                            "partition",
                            "record_type",
                            "key_deserializer",
                            "value_deserializer",
                            "refused",
                            "broken",
                            NULL};
    PyObject *data, *cursor, *epoch, *topic, *partition, *record_type;
    PyObject *key_deserializer, *value_deserializer, *refused, *broken;
    Py_ssize_t start, end;
    long long left, base_offset, next_offset, timestamp, position;
    int log_append_time;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "SnnLLLLpLOOOOO!OOOO", names, &data, &start, &end, &left, &base_offset,
            &next_offset, &timestamp, &log_append_time, &position, &cursor, &epoch, &topic,
            &partition, &PyType_Type, &record_type, &key_deserializer, &value_deserializer,
            &refused, &broken)) {
        return NULL;
    }
    if (start < 0 || end < start || end > PyBytes_GET_SIZE(data)) {
        PyErr_SetString(PyExc_ValueError, "no part of the data");
        return NULL;
    }
    if (PyBytes_GET_SIZE(data) > DATA_BYTES_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too much data");
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)record_type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "records must be tuples");
        return NULL;
    }
    Batch *self = (Batch *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->data = Py_NewRef(data);
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(data);
    self->start = bytes + start;
    self->at = bytes + start;
    self->end = bytes + end;
    self->left = left;
    self->base_offset = base_offset;
    self->next_offset = next_offset;
    self->timestamp = timestamp;
    self->log_append_time = log_append_time;
    self->position = position;
    self->cursor = Py_NewRef(cursor);
    self->epoch = Py_NewRef(epoch);
    self->topic = Py_NewRef(topic);
    self->partition = Py_NewRef(partition);
    self->timestamp_type = PyLong_FromLong(log_append_time);
    self->record_type = Py_NewRef(record_type);
    self->key_deserializer = Py_NewRef(key_deserializer);
    self->value_deserializer = Py_NewRef(value_deserializer);
    self->refused = Py_NewRef(refused);
    self->broken = Py_NewRef(broken);
    if (self->timestamp_type == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
batch_traverse(Batch *self, visitproc visit, void *arg)
{
    Py_VISIT(self->cursor);
    Py_VISIT(self->record_type);
    Py_VISIT(self->key_deserializer);
    Py_VISIT(self->value_deserializer);
    Py_VISIT(self->refused);
    Py_VISIT(self->broken);
    return 0;
}

/* A deserializer may hold on to the consumer, and so to us. What is used without a look whether it
 * is there stays until the end. */
static int
batch_clear(Batch *self)
{
    self->left = 0;
    self->at = self->end;
    Py_CLEAR(self->cursor);
    Py_CLEAR(self->key_deserializer);
    Py_CLEAR(self->value_deserializer);
    Py_CLEAR(self->refused);
    Py_CLEAR(self->broken);
    return 0;
}

static void
batch_dealloc(Batch *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    batch_clear(self);
    Py_XDECREF(self->data);
    Py_XDECREF(self->epoch);
    Py_XDECREF(self->topic);
    Py_XDECREF(self->partition);
    Py_XDECREF(self->timestamp_type);
    Py_XDECREF(self->record_type);
    Py_XDECREF(self->last_timestamp);
    type->tp_free((PyObject *)self);
}

/* Where the record at `at` ends; NULL with `why` set when there is none. */
static inline const unsigned char *
parse(Batch *self, const unsigned char *at, Parsed *parsed, const char **why)
{
    int64_t length, timestamp, delta, count;
    at = read_varint(at, self->end, &length);
    *why = "a record is longer than its batch";
    if (at == NULL || length < 0 || length > self->end - at) {
        return NULL;
    }
    const unsigned char *end = at + length;
    *why = "a field of a record does not fit into it";
    if (at == end || *at++ >= 0x80) { /* attributes: none are in use, and the codec takes a varint */
        return NULL;
    }
    if ((at = read_varint(at, end, &timestamp)) == NULL ||
        (at = read_varint(at, end, &delta)) == NULL ||
        (at = read_bytes(at, end, &parsed->key)) == NULL ||
        (at = read_bytes(at, end, &parsed->value)) == NULL ||
        (at = read_varint(at, end, &count)) == NULL) {
        return NULL;
    }
    if (count < 0 || count > (end - at) / HEADER_BYTES_MIN) {
        return NULL;
    }
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
    if (at != end) {
        return NULL;
    }
    /* as unsigned: what overflows wraps, as it does for the producer */
    parsed->timestamp = self->log_append_time
                            ? self->timestamp
                            : (int64_t)((uint64_t)self->timestamp + (uint64_t)timestamp);
    parsed->offset = (int64_t)((uint64_t)self->base_offset + (uint64_t)delta);
    *why = "a record has an offset beyond its batch";
    return parsed->offset < self->next_offset ? at : NULL;
}

/* The next record that is to be handed out. 1: there is one; 0: the end; -1: the bytes are none. */
static inline int
find_next(Batch *self, Parsed *parsed, const unsigned char **end, const char **why)
{
    while (self->left > 0) {
        *end = parse(self, self->at, parsed, why);
        if (*end == NULL) {
            return -1;
        }
        if (parsed->offset >= self->position) {
            return 1;
        }
        self->at = *end;
        self->left--;
    }
    *why = "there are bytes after the last record";
    return self->at == self->end ? 0 : -1;
}

static void
raise_broken(Batch *self, const char *why)
{
    if (self->broken == NULL) {
        PyErr_SetString(PyExc_ValueError, why);
        return;
    }
    PyObject *result = PyObject_CallFunction(self->broken, "s", why);
    Py_XDECREF(result); /* it has raised */
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, why);
    }
}

/* A deserializer has raised: an error of its own becomes ours, an interruption stays one. */
static void
raise_refused(Batch *self, int64_t offset)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception) || self->refused == NULL) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    PyObject *result = PyObject_CallFunction(self->refused, "LO", (long long)offset, value);
    Py_XDECREF(result);
    if (!PyErr_Occurred()) {
        PyErr_SetObject(type, value);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* Steals `raw`, which may be NULL. */
static PyObject *
deserialized(PyObject *deserializer, PyObject *raw)
{
    if (deserializer == Py_None || deserializer == NULL || raw == NULL) {
        return raw;
    }
    PyObject *made = PyObject_CallOneArg(deserializer, raw);
    Py_DECREF(raw);
    return made;
}

static PyObject *
timestamp_object(Batch *self, int64_t value)
{
    if (self->last_timestamp == NULL || self->last_timestamp_value != value) {
        PyObject *made = PyLong_FromLongLong(value);
        if (made == NULL) {
            return NULL;
        }
        Py_XSETREF(self->last_timestamp, made);
        self->last_timestamp_value = value;
    }
    return Py_NewRef(self->last_timestamp);
}

/* A Record. Kafka's own fields hold no objects that could lead back to it, so it is kept from the
 * garbage collector, as Python does with plain tuples of such objects: in a large process looking
 * at the records that are kept would take ten times as long as making them. */
static PyObject *
make_record(Batch *self, const Parsed *parsed, const unsigned char *end)
{
    PyTypeObject *type = (PyTypeObject *)self->record_type;
    PyObject *record = NULL;
    PyObject *value = NULL;
    /* what others have written runs before there is a record that is not whole */
    PyObject *key = deserialized(self->key_deserializer, object_of(parsed->key));
    if (key != NULL) {
        value = deserialized(self->value_deserializer, object_of(parsed->value));
    }
    if (value == NULL) {
        Py_XDECREF(key);
        raise_refused(self, parsed->offset);
        return NULL;
    }
    int plain = !PyObject_IS_GC(key) && !PyObject_IS_GC(value);
    record = type->tp_alloc(type, FIELDS);
    if (record == NULL) {
        Py_DECREF(key);
        Py_DECREF(value);
        return NULL;
    }
    PyTuple_SET_ITEM(record, 0, Py_NewRef(self->topic));
    PyTuple_SET_ITEM(record, 1, Py_NewRef(self->partition));
    PyTuple_SET_ITEM(record, 2, PyLong_FromLongLong(parsed->offset));
    PyTuple_SET_ITEM(record, 3, timestamp_object(self, parsed->timestamp));
    PyTuple_SET_ITEM(record, 4, Py_NewRef(self->timestamp_type));
    PyTuple_SET_ITEM(record, 5, key);
    PyTuple_SET_ITEM(record, 6, value);
    PyTuple_SET_ITEM(record, 7, Py_NewRef(Py_None));
    PyTuple_SET_ITEM(record, 8, PyLong_FromSsize_t(parsed->key.length));
    PyTuple_SET_ITEM(record, 9, PyLong_FromSsize_t(parsed->value.length));
    PyTuple_SET_ITEM(record, 10,
                     parsed->header_count == 0
                         ? Py_NewRef(no_headers)
                         : headers_of(parsed->headers, end, parsed->header_count));
    if (PyErr_Occurred()) {
        Py_DECREF(record);
        return NULL;
    }
    if (plain) {
        PyObject_GC_UnTrack(record);
    }
    return record;
}

static int
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

static PyObject *
batch_next(Batch *self)
{
    Parsed parsed;
    const unsigned char *end;
    const char *why;
    switch (find_next(self, &parsed, &end, &why)) {
    case 0:
        return NULL;
    case -1:
        raise_broken(self, why);
        return NULL;
    default:
        break;
    }
    const unsigned char *before = self->at;
    PyObject *record = make_record(self, &parsed, end);
    if (record == NULL) {
        return NULL;
    }
    if (self->at != before) { /* the deserializer has asked us for records */
        Py_DECREF(record);
        PyErr_SetString(PyExc_RuntimeError, "a deserializer asked for records");
        return NULL;
    }
    if (move_cursor(self, parsed.offset + 1) < 0) {
        Py_DECREF(record);
        return NULL;
    }
    self->at = end;
    self->left--;
    self->position = parsed.offset + 1;
    return record;
}

/* scan(columns, limit): add at most `limit` records to columns. How many; raises only when there are
 * none before what is wrong. */
static PyObject *
batch_scan(Batch *self, PyObject *args)
{
    Columns *columns;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "O!n", &ColumnsType, &columns, &limit)) {
        return NULL;
    }
    const unsigned char *from = self->at;
    if (columns_bytes(columns) > COLUMN_BYTES_MAX - (self->end - from)) {
        PyErr_SetString(PyExc_OverflowError, "too much data");
        return NULL;
    }
    Py_ssize_t possible = (self->end - from) / RECORD_BYTES_MIN;
    Py_ssize_t wanted = limit < possible ? limit : possible;
    if (self->left < wanted) {
        wanted = self->left > 0 ? (Py_ssize_t)self->left : 0;
    }
    if (columns_reserve(columns, wanted) < 0) {
        return NULL;
    }
    Py_ssize_t count = 0;
    while (count < wanted) {
        Parsed parsed;
        const unsigned char *end;
        const char *why;
        int found = find_next(self, &parsed, &end, &why);
        if (found == 0 || (found < 0 && count > 0)) {
            break;
        }
        if (found < 0) {
            raise_broken(self, why);
            return NULL;
        }
        if (columns_add(columns, &parsed, end) < 0) {
            return NULL;
        }
        self->at = end;
        self->left--;
        self->position = parsed.offset + 1;
        count++;
    }
    if (count == 0 && limit > 0) { /* what cannot be in so few bytes, or is after the last */
        Parsed parsed;
        const unsigned char *end;
        const char *why;
        if (find_next(self, &parsed, &end, &why) < 0) {
            raise_broken(self, why);
            return NULL;
        }
    }
    if (count > 0 && move_cursor(self, self->position) < 0) {
        return NULL;
    }
    return PyLong_FromSsize_t(count);
}

static PyMethodDef batch_methods[] = {
    {"scan", (PyCFunction)batch_scan, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *
batch_payload_bytes(Batch *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->end - self->start);
}

static PyGetSetDef batch_getset[] = {
    {"payload_bytes", (getter)batch_payload_bytes, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef batch_members[] = {
    {"left", T_LONGLONG, offsetof(Batch, left), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject BatchType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kip848_client.records._scan.Batch",
    .tp_basicsize = sizeof(Batch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = batch_new,
    .tp_dealloc = (destructor)batch_dealloc,
    .tp_traverse = (traverseproc)batch_traverse,
    .tp_clear = (inquiry)batch_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = (iternextfunc)batch_next,
    .tp_methods = batch_methods,
    .tp_members = batch_members,
    .tp_getset = batch_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kip848_client.records._scan",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__scan(void)
{
    consumed_name = PyUnicode_InternFromString("consumed");
    consumed_epoch_name = PyUnicode_InternFromString("consumed_epoch");
    no_headers = PyTuple_New(0);
    PyObject *made = PyModule_Create(&module);
    if (consumed_name == NULL || consumed_epoch_name == NULL || no_headers == NULL ||
        made == NULL || PyModule_AddType(made, &ColumnsType) < 0 ||
        PyModule_AddType(made, &BatchType) < 0 ||
        PyModule_AddIntConstant(made, "EDITION", EDITION) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
