/* Making, cutting and looking at a column of bytes. */

#include "bytes_column.h"

int
bytes_column_init(BytesColumn *column)
{
    column->count = 0;
    int failed = array_init(&column->data) < 0;
    failed |= array_init(&column->ends) < 0;
    failed |= array_init(&column->nulls) < 0;
    if (failed || array_reserve(&column->ends, sizeof(int32_t)) < 0) {
        return -1;
    }
    array_put_int32(&column->ends, 0);
    return 0;
}

void
bytes_column_free(BytesColumn *column)
{
    Py_XDECREF(column->data.bytes);
    Py_XDECREF(column->ends.bytes);
    Py_XDECREF(column->nulls.bytes);
}

int
bytes_column_add_replaced(BytesColumn *column, Bytes bytes)
{
    if (array_reserve(&column->ends, sizeof(int32_t)) < 0 ||
        array_reserve(&column->data, bytes.length * REPLACEMENT_BYTES) < 0) {
        return -1;
    }
    column->data.used += write_replaced(bytes, array_end(&column->data));
    array_put_int32(&column->ends, (int32_t)column->data.used);
    column->count++;
    return 0;
}

void
bytes_column_cut(BytesColumn *column, Py_ssize_t count)
{
    column->count = count;
    column->ends.used = (count + 1) * sizeof(int32_t);
    column->data.used = array_int32(&column->ends, count);
    Py_ssize_t nulls = column->nulls.used / (Py_ssize_t)sizeof(int32_t);
    while (nulls > 0 && array_int32(&column->nulls, nulls - 1) >= count) {
        nulls--;
    }
    column->nulls.used = nulls * sizeof(int32_t);
}

PyObject *
bytes_column_item(const BytesColumn *column, Py_ssize_t index, Py_ssize_t *null)
{
    if (*null < column->nulls.used / (Py_ssize_t)sizeof(int32_t) &&
        array_int32(&column->nulls, *null) == index) {
        (*null)++;
        Py_RETURN_NONE;
    }
    int32_t begin = array_int32(&column->ends, index);
    int32_t end = array_int32(&column->ends, index + 1);
    return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(column->data.bytes) + begin,
                                     end - begin);
}

PyObject *
bytes_column_list(const BytesColumn *column)
{
    PyObject *list = PyList_New(column->count);
    Py_ssize_t null = 0;
    for (Py_ssize_t i = 0; list != NULL && i < column->count; i++) {
        PyObject *item = bytes_column_item(column, i, &null);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

PyObject *
bytes_column_buffers(const BytesColumn *column)
{
    Py_ssize_t nulls = column->nulls.used / (Py_ssize_t)sizeof(int32_t);
    PyObject *bitmap;
    if (nulls == 0) {
        bitmap = Py_NewRef(Py_None);
    }
    else {
        Py_ssize_t size = (column->count + 7) / 8;
        bitmap = PyBytes_FromStringAndSize(NULL, size);
        if (bitmap == NULL) {
            return NULL;
        }
        unsigned char *bits = (unsigned char *)PyBytes_AS_STRING(bitmap);
        memset(bits, 0xff, size);
        for (Py_ssize_t i = 0; i < nulls; i++) {
            int32_t index = array_int32(&column->nulls, i);
            bits[index / 8] &= (unsigned char)~(1u << (index % 8));
        }
    }
    return Py_BuildValue("nnNOO", column->count, nulls, bitmap, column->ends.bytes,
                         column->data.bytes);
}
