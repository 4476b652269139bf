/* The extension kip848_client.records._scan, which reads the records of one batch: as Record
 * objects, one at a time (next.c), or as columns (scan.c).
 *
 * Everything in this folder is optional: where it is not built, _list_batch.py does the same,
 * slower.
 */

#include "batch.h"
#include "columns.h"

#define EDITION 4 /* grows with every change that _scanned.py sees; it refuses another one */

PyObject *consumed_name, *consumed_epoch_name, *no_headers, *cancelled_error;

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
    PyObject *asyncio = PyImport_ImportModule("asyncio.exceptions");
    cancelled_error =
        asyncio == NULL ? NULL : PyObject_GetAttrString(asyncio, "CancelledError");
    Py_XDECREF(asyncio);
    PyObject *made = PyModule_Create(&module);
    if (consumed_name == NULL || consumed_epoch_name == NULL || no_headers == NULL ||
        cancelled_error == NULL || made == NULL || PyModule_AddType(made, &ColumnsType) < 0 ||
        PyModule_AddType(made, &BatchType) < 0 ||
        PyModule_AddIntConstant(made, "EDITION", EDITION) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
