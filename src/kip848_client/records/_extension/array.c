/* What of a growing array does not happen for each record. */

#include "array.h"

int
array_init(Array *array)
{
    array->used = 0;
    array->bytes = PyByteArray_FromStringAndSize(NULL, 0);
    return array->bytes == NULL ? -1 : 0;
}

int
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
