"""From a slice of a log to the application: records, lists, columns, Arrow.

::

    reader = SliceReader(slice_, decoding)
    record = reader.one()               # None: nothing is left, finish the slice
    records = reader.take(500)          # look at reader.done
    reader.fill(gathered)               # then RecordBatchView(slice_.tp, gathered, decoding)

With an async deserializer it is an ``AheadReader`` instead. Both raise ``NotUnpacked`` if a large
batch comes next: call its ``work`` in a thread, then ask again.
"""

from __future__ import annotations

from kip848_client.records._ahead import AheadReader, NotMade
from kip848_client.records._columns import Gathered
from kip848_client.records._paths import COMPILED
from kip848_client.records._reader import SliceReader
from kip848_client.records._record import Decoding, Deserializer, Record, is_async, is_cancelled
from kip848_client.records._unpacking import NotUnpacked
from kip848_client.records._unreadable import STOPS, RecordsDamaged
from kip848_client.records._view import RecordBatchView

__all__ = [
    "COMPILED",
    "STOPS",
    "AheadReader",
    "Decoding",
    "Deserializer",
    "Gathered",
    "NotMade",
    "NotUnpacked",
    "Record",
    "RecordBatchView",
    "RecordsDamaged",
    "SliceReader",
    "is_async",
    "is_cancelled",
]
