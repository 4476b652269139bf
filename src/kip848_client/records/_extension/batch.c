/* The type Batch: what is told of a batch when it is opened, and what it keeps alive. */

#include "batch.h"

#include <stddef.h>
#include <structmember.h>

#define DATA_BYTES_MAX (1 << 29)

/* As _scan.pyi has them. */
static char *argument_names[] = {
    "data", "start", "end", "records", "base_offset", "next_offset", "timestamp",
    "log_append_time", "position", "cursor", "epoch", "topic", "partition", "record_type",
    "key_deserializer", "value_deserializer", "refused", "odd", "broken", NULL};

/* The references are borrowed. */
static int
read_arguments(Batch *given, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t start, end;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "SnnLLLLpLOOOOO!OOOOO", argument_names, &given->data, &start, &end,
            &given->left, &given->base_offset, &given->next_offset, &given->timestamp,
            &given->log_append_time, &given->position, &given->cursor, &given->epoch, &given->topic,
            &given->partition, &PyType_Type, &given->record_type, &given->key_deserializer,
            &given->value_deserializer, &given->refused, &given->odd, &given->broken)) {
        return -1;
    }
    if (start < 0 || end < start || end > PyBytes_GET_SIZE(given->data)) {
        PyErr_SetString(PyExc_ValueError, "no part of the data");
        return -1;
    }
    if (PyBytes_GET_SIZE(given->data) > DATA_BYTES_MAX) {
        PyErr_SetString(PyExc_OverflowError, "too much data");
        return -1;
    }
    if (!PyType_IsSubtype((PyTypeObject *)given->record_type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "records must be tuples");
        return -1;
    }
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(given->data);
    given->start = bytes + start;
    given->at = bytes + start;
    given->end = bytes + end;
    given->place = given->base_offset;
    return 0;
}

static PyObject *
batch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Batch given = {0};
    if (read_arguments(&given, args, kwargs) < 0) {
        return NULL;
    }
    PyObject *timestamp_type = PyLong_FromLong(given.log_append_time);
    if (timestamp_type == NULL) {
        return NULL;
    }
    Batch *self = (Batch *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_DECREF(timestamp_type);
        return NULL;
    }
    given.ob_base = self->ob_base;
    *self = given;
    self->timestamp_type = timestamp_type;
    Py_INCREF(self->data);
    Py_INCREF(self->cursor);
    Py_INCREF(self->epoch);
    Py_INCREF(self->topic);
    Py_INCREF(self->partition);
    Py_INCREF(self->record_type);
    Py_INCREF(self->key_deserializer);
    Py_INCREF(self->value_deserializer);
    Py_INCREF(self->refused);
    Py_INCREF(self->odd);
    Py_INCREF(self->broken);
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
    Py_VISIT(self->odd);
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
    Py_CLEAR(self->odd);
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

void
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

void
raise_odd(Batch *self, const Parsed *parsed, const char *why)
{
    if (self->odd == NULL) {
        PyErr_SetString(PyExc_ValueError, why);
        return;
    }
    Parsed at_its_place = *parsed;
    at_its_place.offset = self->place;
    PyObject *record =
        parsed->fields_known ? raw_record(self, &at_its_place) : Py_NewRef(Py_None);
    if (record == NULL) {
        return;
    }
    const char *data = (const char *)self->at;
    PyObject *result = PyObject_CallFunction(self->odd, "Lsy#O", self->place, why, data,
                                             parsed->end - self->at, record);
    Py_DECREF(record);
    Py_XDECREF(result); /* it has raised */
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, why);
    }
}

int
is_busy(const Batch *self)
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a deserializer asked for records");
    }
    return self->busy;
}

static PyObject *
batch_payload_bytes(Batch *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->end - self->start);
}

static PyMethodDef batch_methods[] = {
    {"scan", (PyCFunction)batch_scan, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef batch_getset[] = {
    {"payload_bytes", (getter)batch_payload_bytes, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef batch_members[] = {
    {"left", T_LONGLONG, offsetof(Batch, left), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject BatchType = {
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
