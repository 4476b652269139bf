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

static PyObject *
text_of(Bytes bytes)
{
    return is_text(bytes) ? PyUnicode_DecodeUTF8((const char *)bytes.at, bytes.length, NULL)
                          : replaced_text(bytes);
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
        PyObject *name = text_of(key);
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

/* Whether asyncio.CancelledError was raised. Nothing can cancel the task inside a deserializer that
 * is not awaited, so the record gets this error like any other. */
static int
is_cancellation(void)
{
    return cancelled_error != NULL && PyErr_ExceptionMatches(cancelled_error);
}

/* A deserializer has raised: an error of its own becomes ours, an interruption stays one. */
static void
raise_refused(Batch *self, const Parsed *parsed)
{
    int is_error = PyErr_ExceptionMatches(PyExc_Exception) || is_cancellation();
    if (!is_error || self->refused == NULL) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    PyObject *record = raw_record(self, parsed);
    PyObject *result =
        record == NULL ? NULL : PyObject_CallFunctionObjArgs(self->refused, record, value, NULL);
    Py_XDECREF(record);
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
deserialized(Batch *self, PyObject *deserializer, Bytes bytes, const Parsed *parsed)
{
    PyObject *raw = object_of(bytes);
    if (deserializer == Py_None || deserializer == NULL || raw == NULL) {
        return raw;
    }
    PyObject *made = PyObject_CallOneArg(deserializer, raw);
    Py_DECREF(raw);
    if (made == NULL) {
        raise_refused(self, parsed);
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

/* A Record of a key and a value, of which it takes the references, also where there is none.
 * Kafka's own fields hold no objects that could lead back to it, so it is kept from the garbage
 * collector, as Python does with plain tuples of such objects: in a large process looking at the
 * records that are kept would take ten times as long as making them. */
static PyObject *
record_of(Batch *self, const Parsed *parsed, const unsigned char *end, PyObject *key,
          PyObject *value)
{
    PyTypeObject *type = (PyTypeObject *)self->record_type;
    PyObject *headers = NULL, *record = NULL;
    if (key != NULL && value != NULL) {
        headers = parsed->header_count == 0
                      ? Py_NewRef(no_headers)
                      : headers_of(parsed->headers, end, parsed->header_count);
        record = headers == NULL ? NULL : type->tp_alloc(type, FIELDS);
    }
    if (record == NULL) {
        Py_XDECREF(key);
        Py_XDECREF(value);
        Py_XDECREF(headers);
        return NULL;
    }
    int plain = !PyObject_IS_GC(key) && !PyObject_IS_GC(value);
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
raw_record(Batch *self, const Parsed *parsed)
{
    PyObject *key = object_of(parsed->key);
    PyObject *value = key == NULL ? NULL : object_of(parsed->value);
    return record_of(self, parsed, parsed->end, key, value);
}

/* Deserializers and, as headers are made, the garbage collector run what others have written:
 * before there is a record that is not whole. */
static PyObject *
make_record(Batch *self, const Parsed *parsed, const unsigned char *end)
{
    PyObject *key = deserialized(self, self->key_deserializer, parsed->key, parsed);
    PyObject *value =
        key == NULL ? NULL : deserialized(self, self->value_deserializer, parsed->value, parsed);
    return record_of(self, parsed, end, key, value);
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
    case END:
        return NULL;
    case BROKEN:
        raise_broken(self, why);
        return NULL;
    case ODD:
        self->busy = 1;
        raise_odd(self, &parsed, why);
        self->busy = 0;
        return NULL;
    case FOUND:
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
    pass(self, end, parsed.offset);
    self->position = parsed.offset + 1;
    return record;
}
