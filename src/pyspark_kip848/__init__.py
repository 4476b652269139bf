"""Makes the format ``kip848`` known to Spark by itself: Spark imports every top-level package whose
name begins with ``pyspark_`` and takes its ``DefaultSource``.

A package of that kind that cannot be imported breaks the look-up of all others, so this one says
nothing where pyspark is too old for it.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):  # pyspark before 4.2, or none
    from kip848_client.spark._data_source import Kip848DataSource

    DefaultSource = Kip848DataSource
