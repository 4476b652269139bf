/* A growing array in a bytearray, which pyarrow can look at without a copy. */

#pragma once

#include "internal.h"

#include <string.h>

typedef struct {
    PyObject *bytes;
    Py_ssize_t used;
} Array;

INTERNAL int array_init(Array *array);

/* Room for so many bytes more. Fails, as it must, while somebody looks at the bytes. */
INTERNAL __attribute__((cold)) int array_grow(Array *array, Py_ssize_t more);

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
