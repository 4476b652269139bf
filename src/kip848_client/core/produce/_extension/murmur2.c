/* The extension kip848_client.core.produce._murmur2: the hash of a key. It is optional: where it is
 * not built, _partitioner.py does the same, slower.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define SEED 0x9747b28cu
#define MIX 0x5bd1e995u

static uint32_t
word_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static PyObject *
murmur2(PyObject *module, PyObject *key)
{
    (void)module;
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(key, &bytes, &length) < 0) {
        return NULL;
    }
    const unsigned char *at = (const unsigned char *)bytes;
    uint32_t hash = SEED ^ (uint32_t)length;
    for (; length >= 4; length -= 4, at += 4) {
        uint32_t word = word_at(at) * MIX;
        hash = hash * MIX ^ (word ^ word >> 24) * MIX;
    }
    if (length > 0) {
        for (Py_ssize_t each = 0; each < length; each++) {
            hash ^= (uint32_t)at[each] << (8 * each);
        }
        hash *= MIX;
    }
    hash = (hash ^ hash >> 13) * MIX;
    return PyLong_FromUnsignedLong(hash ^ hash >> 15);
}

static PyMethodDef functions[] = {
    {"murmur2", murmur2, METH_O, "Java's Utils.murmur2, as an unsigned number."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kip848_client.core.produce._murmur2",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__murmur2(void)
{
    return PyModule_Create(&module);
}
