"""``AheadReader``: from a slice to records whose deserializers are awaited.

A record is made before it is delivered: ``next_unmade`` returns it as bytes, the caller awaits the
deserializers and calls ``made`` or ``refused``. The cursor moves when the record is delivered, not
before: so a call that is cancelled meanwhile, or a partition that is revoked, loses no records.

::

    while (raw := reader.next_unmade()) is not None:
        reader.made(raw, await key_of(raw.key), await value_of(raw.value))
    records = reader.take(500)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.fetch._model import Slice
from kip848_client.errors import RecordUnreadable
from kip848_client.records._columns import Gathered
from kip848_client.records._reader import SliceReader, unpacking_of
from kip848_client.records._record import Decoding, RawRecord, Record
from kip848_client.records._unpacking import NotUnpacked
from kip848_client.records._unreadable import not_deserialized

__all__ = ["AheadReader", "NotMade"]

_NOTHING: Final[Iterator[Any]] = iter(())


class NotMade(Exception):
    """There are records, but none is deserialized: let these readers make some, then ask again."""

    def __init__(self, readers: Sequence[AheadReader]) -> None:
        super().__init__(readers)
        self.readers = readers


class AheadReader:
    """Reads one slice like ``SliceReader``, but ``one`` and ``take`` raise ``NotMade`` if a record
    must be made first, and there is no fast path."""

    __slots__ = (
        "__weakref__",
        "_ahead",
        "_cursor",
        "_decoding",
        "_failure",
        "_made",
        "_reader",
        "_slice",
        "_unmade",
        "_unpacking",
    )

    def __init__(self, slice_: Slice, decoding: Decoding) -> None:
        self._slice = slice_
        self._cursor = slice_.cursor
        self._decoding = replace(decoding, key_deserializer=None, value_deserializer=None)
        self._unpacking = unpacking_of(slice_, self._decoding)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Whether no record after the cursor is made."""
        self._ahead = copy(self._cursor)
        """How far we are."""
        self._reader = SliceReader(
            replace(self._slice, cursor=self._ahead), self._decoding, self._unpacking
        )
        self._made: deque[tuple[Record[Any, Any], int]] = deque()
        """Records that are ready for delivery, each with its leader epoch."""
        self._unmade: RawRecord | None = None
        self._failure: Exception | None = None
        """The error of the record after those."""

    # -- making ------------------------------------------------------------------------------

    @property
    def wants(self) -> bool:
        """Whether made records may still be delivered."""
        return self._slice.cursor is self._cursor and self._cursor.readable

    @property
    def ready(self) -> int:
        """How many records are made."""
        return len(self._made)

    def next_unmade(self) -> RawRecord | None:
        """The next record to make, as bytes; ``None`` at the end, and after a refused record until
        its error was raised. It stays the same until ``made`` or ``refused``."""
        if self._failure is not None:
            return None
        if self._unmade is None:
            try:
                self._unmade = self._reader.one()
            except (RecordUnreadable, NotUnpacked) as err:
                self._failure = err
        return self._unmade

    def made(self, raw: RawRecord, key: object, value: object) -> None:
        """Store the record that the deserializers have made."""
        if raw is self._unmade:  # otherwise the slice was read in another way meanwhile
            self._unmade = None
            record = Record(*raw[:5], key, value, *raw[7:])
            self._made.append((record, self._ahead.consumed_epoch))

    def refused(self, raw: RawRecord, cause: BaseException) -> None:
        """Store the error of a deserializer. The record stays the next one to make."""
        if raw is self._unmade:
            self._failure = not_deserialized(raw, cause)

    # -- handing out -------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """See ``SliceReader``."""
        return not self._made and self._is_whole and self._reader.done

    @property
    def current(self) -> Iterator[Record[Any, Any]]:
        """``None``: every record is awaited."""
        return _NOTHING

    def resume(self) -> None:
        """See ``SliceReader``."""

    def one(self) -> Record[Any, Any] | None:
        """See ``SliceReader``. Raises ``NotMade``."""
        if self._made:
            return self._hand_out()
        self._need_end()
        return None

    def take(self, limit: int | None = None) -> list[Record[Any, Any]]:
        """See ``SliceReader``. Raises ``NotMade`` if no record is ready."""
        count = len(self._made) if limit is None else min(limit, len(self._made))
        taken = [self._hand_out() for _ in range(count)]
        if not taken:
            self._need_end()
        if self.done:
            self._move(self._slice.next_offset, self._slice.last_epoch)
        return taken

    def fill(self, gathered: Gathered) -> None:
        """See ``SliceReader``: columns are bytes, for which no record is made."""
        reader = SliceReader(self._slice, self._decoding, self._unpacking)
        try:
            reader.fill(gathered)
        finally:
            self._begin_anew()

    def _hand_out(self) -> Record[Any, Any]:
        record, epoch = self._made.popleft()
        self._move(record.offset + 1, epoch)
        if not self._made:
            self._catch_up()
        return record

    def _need_end(self) -> None:
        """Raise the reason why no record is ready, unless this is the end."""
        self._catch_up()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure.with_traceback(None)
        if not self.done:
            raise NotMade((self,))

    @property
    def _is_whole(self) -> bool:
        """Whether all that was read was made."""
        return self._unmade is None and self._failure is None

    def _catch_up(self) -> None:
        """Skip offsets without records: markers, gaps."""
        if self._unmade is None:
            self._move(self._ahead.consumed, self._ahead.consumed_epoch)

    def go_back(self, offset: int, epoch: int) -> None:
        """See ``SliceReader``."""
        self._cursor.consumed, self._cursor.consumed_epoch = offset, epoch
        self._begin_anew()

    def _move(self, offset: int, epoch: int) -> None:
        if offset > self._cursor.consumed:
            self._cursor.consumed, self._cursor.consumed_epoch = offset, epoch
