/* What every file of the extension begins with. */

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Of all files of the extension, and seen by nobody else: so a call of it is a plain one. */
#ifdef __GNUC__
#define INTERNAL extern __attribute__((visibility("hidden")))
#else
#define INTERNAL extern
#endif
