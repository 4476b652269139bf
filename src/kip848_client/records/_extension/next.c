/* Records as objects, one at a time. */

#include "batch.h"

#define FIELDS 11 /* of Record */

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
    PyObject_GC_UnTrack(headers); /* before it is seen by halves */
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
        PyObject_GC_UnTrack(pair);
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
    }
    return headers;
failed:
    Py_DECREF(headers);
    return NULL;
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

/* A key or a value as the application sees it. */
static PyObject *
deserialized(Batch *self, PyObject *deserializer, Bytes bytes, int64_t offset)
{
    PyObject *raw = object_of(bytes);
    if (deserializer == Py_None || deserializer == NULL || raw == NULL) {
        return raw;
    }
    PyObject *made = PyObject_CallOneArg(deserializer, raw);
    Py_DECREF(raw);
    if (made == NULL) {
        raise_refused(self, offset);
    }
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
    /* deserializers and, as headers are made, the garbage collector run what others have written:
     * before there is a record that is not whole */
    PyObject *key = deserialized(self, self->key_deserializer, parsed->key, parsed->offset);
    if (key == NULL) {
        return NULL;
    }
    PyObject *value = deserialized(self, self->value_deserializer, parsed->value, parsed->offset);
    if (value == NULL) {
        Py_DECREF(key);
        return NULL;
    }
    int plain = !PyObject_IS_GC(key) && !PyObject_IS_GC(value);
    PyObject *headers = parsed->header_count == 0
                            ? Py_NewRef(no_headers)
                            : headers_of(parsed->headers, end, parsed->header_count);
    PyObject *record = headers == NULL ? NULL : type->tp_alloc(type, FIELDS);
    if (record == NULL) {
        Py_DECREF(key);
        Py_DECREF(value);
        Py_XDECREF(headers);
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
    PyTuple_SET_ITEM(record, 10, headers);
    if (PyErr_Occurred()) {
        Py_DECREF(record);
        return NULL;
    }
    if (plain) {
        PyObject_GC_UnTrack(record);
    }
    return record;
}

PyObject *
batch_next(Batch *self)
{
    Parsed parsed;
    const unsigned char *end;
    const char *why;
    if (is_busy(self)) {
        return NULL;
    }
    switch (find_next(self, &parsed, &end, &why)) {
    case 0:
        return NULL;
    case -1:
        raise_broken(self, why);
        return NULL;
    default:
        break;
    }
    self->busy = 1;
    PyObject *record = make_record(self, &parsed, end);
    self->busy = 0;
    if (record == NULL) {
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
