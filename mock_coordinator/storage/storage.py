"""A broker's disk in a folder: read at the start, written before any response.

Theory of operation
===================

The outputs of the core say what was appended to its logs (``Persist``). All other state that
survives a crash is compared with its stored form after each request that may change it. The driver
passes both to ``take`` and holds back all responses, of all connections and in order, until
``flush`` has written them. One flush serves all requests of a turn of the event loop.

The fsync policy defines *written*. ``always``: on the disk (fsync) before any response, so an
acknowledged record or commit survives a crash of the machine. ``second``: passed to the operating
system before any response, and on the disk at most about a second later; a killed process loses
nothing, a crash of the machine the last second. ``never``: the operating system decides when.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from kip848_client.errors import ConfigError
from mock_coordinator.core.apis.table import writes_documents
from mock_coordinator.core.groups.record_format import RecordFormatError
from mock_coordinator.core.inputs import Input, RequestReceived
from mock_coordinator.core.logs.record_batch import BatchError
from mock_coordinator.core.outputs import Output, Persist
from mock_coordinator.core.state.broker import Disk
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.storage.data_file import DataDamaged, DataFile, DataUnwritable
from mock_coordinator.storage.documents import (
    documents_of,
    old_transactions,
    restore_documents,
    stored_brokers,
    topic_key,
)
from mock_coordinator.storage.entries import Batch, Document, Entry

__all__ = ["FSYNC_POLICIES", "Storage"]

_log: Final = logging.getLogger("mock_coordinator")

FSYNC_POLICIES: Final = ("always", "second", "never")
_SECOND_S: Final = 1.0
_GARBAGE_BYTES: Final = 64 << 20
_Batches: TypeAlias = defaultdict[str, defaultdict[int, list[bytes]]]
"""Record batches of the partitions of each topic, which is named by the key of its document."""


class Storage:
    """The folder ``path``, made when it does not exist. ``fsync`` is one of ``FSYNC_POLICIES``.

    Call ``load`` once with an empty disk. Raises ``ConfigError`` for a folder that another process
    uses or a policy that does not exist, and ``DataDamaged`` for content that cannot be used.
    """

    def __init__(self, path: Path, fsync: str = "always") -> None:
        if fsync not in FSYNC_POLICIES:
            raise ConfigError(f"fsync {fsync!r}: expected one of {', '.join(FSYNC_POLICIES)}")
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(path / "lock")
            self._file: Final = DataFile(path / "data")
        except OSError as err:
            raise ConfigError(f"the data folder {path} cannot be used: {err}") from err
        self._path: Final = path
        self._fsync: Final = fsync
        self._synced_s = time.monotonic()
        self._documents: dict[str, Any] = {}
        self._seen = (-1, -1, -1)
        self._taken: list[Entry] = []
        self._live_bytes = 0
        self._disk: Disk | None = None
        self._failure: DataUnwritable | None = None

    # --- Starting ---------------------------------------------------------------------------------

    def load(self, disk: Disk) -> bool:
        """Fill an empty disk; returns whether the folder had any data. From now on the disk records
        what is appended to it. Call ``begin`` when the brokers have started."""
        documents, batches = self._read()
        self._disk = disk
        found = "cluster" in documents
        if found:
            self._restore(disk, documents, batches)
        self._documents = documents
        disk.logs.keep_unsaved()
        self._live_bytes = sum(len(b.data) for _, log in disk.logs.all() for b in log.batches)
        return found

    def _read(self) -> tuple[dict[str, Any], _Batches]:
        """What is in the file and counts. The records of a topic are gone with it, even if another
        one gets its id."""
        documents: dict[str, Any] = {}
        batches: _Batches = defaultdict(lambda: defaultdict(list))
        for entry in self._file.read():
            if isinstance(entry, Batch):
                batches[topic_key(entry.topic_id)][entry.partition].append(entry.data)
            elif entry.value is None:
                documents.pop(entry.key, None)
                batches.pop(entry.key, None)
            else:
                documents[entry.key] = entry.value
        return documents, batches

    def begin(self, disk: Disk) -> None:
        """Write what the brokers did when they started. A folder of an older format becomes one of
        this, all at once."""
        if self._file.is_old:
            self.rewrite()
            self._documents = documents_of(disk)
            disk.logs.keep_unsaved()
        else:
            self.take(disk, None, ())
            self.flush()

    def _restore(self, disk: Disk, documents: Mapping[str, Any], batches: _Batches) -> None:
        try:
            self._check_brokers(disk, stored_brokers(documents))
            restore_documents(disk, documents)
            config = disk.config
            wanted = config.integer("offsets.topic.num.partitions")
            self._check_partitions(disk, OFFSETS_TOPIC, wanted, "offsets.topic.num.partitions")
            setting = "transaction.state.log.num.partitions"
            self._check_partitions(disk, TRANSACTIONS_TOPIC, disk.transactions.partitions, setting)
            for topic in disk.catalog.topics.values():
                key = topic_key(topic.topic_id)
                starts = documents[key]["starts"]
                for partition in range(topic.partitions):
                    stored = batches[key][partition]
                    start = int(starts.get(str(partition), 0))
                    if stored or start:
                        log = disk.logs.of(topic, partition)
                        if log is not None:
                            log.restore_all(stored, start)
                self._begin_epochs(disk, topic)
            disk.transactions.append(0, *old_transactions(documents))
            for partition in range(wanted):
                journal = disk.journal(partition)
                journal.compact()
                _ = journal.records  # whatever is wrong with them is said now
            for partition in range(disk.transactions.partitions):
                disk.transactions.of(partition).compact()
            _ = disk.transactions.records
        except ConfigError:
            raise
        except (
            BatchError, RecordFormatError, KeyError, TypeError, ValueError, AttributeError
        ) as err:  # fmt: skip
            raise DataDamaged(
                f"the data folder {self._path} has invalid content: "
                f"{type(err).__name__}: {err}. Nothing was changed."
            ) from err

    def _begin_epochs(self, disk: Disk, topic: Topic) -> None:
        """Let the leaders write in their epochs, in which there may be nothing yet."""
        for partition, state in enumerate(disk.leaders.placed(topic.topic_id)):
            log = disk.logs.known(topic.topic_id, partition)
            if log is None and state.leader_epoch:
                log = disk.logs.of(topic, partition)
            if log is not None and state.leader_epoch > log.leader_epoch:
                log.begin_epoch(state.leader_epoch)

    def _check_brokers(self, disk: Disk, stored: Sequence[int]) -> None:
        """Raises ``ConfigError`` when brokers are missing that have replicas."""
        missing = [str(node_id) for node_id in stored if disk.nodes.get(node_id) is None]
        if missing:
            raise ConfigError(
                f"the data folder {self._path} is of brokers {', '.join(map(str, stored))}, but "
                f"{', '.join(missing)} would be missing: start all of them, with the same ids"
            )

    def _check_partitions(self, disk: Disk, name: str, wanted: int, setting: str) -> None:
        """Raises ``ConfigError`` when the number of partitions of an internal topic has changed."""
        topic = disk.catalog.topic(name)
        if topic is not None and topic.partitions != wanted:
            raise ConfigError(
                f"the data folder {self._path} has {topic.partitions} partitions of {name}, but "
                f"{setting} is {wanted}"
            )

    # --- Working ----------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """Whether anything was taken that is not written yet."""
        return bool(self._taken)

    def take(self, disk: Disk, event: Input | None, outputs: Sequence[Output]) -> None:
        """Note what a step changed; ``event`` is ``None`` for changes that no request made."""
        seen = (disk.catalog.version, disk.producer_ids_taken, disk.leaders.version)
        asked = event is None or _may_write(event)
        if asked or seen != self._seen:
            self._seen = seen
            self._take_documents(documents_of(disk))
        for output in outputs:
            if isinstance(output, Persist):
                self._taken += (
                    Batch(topic_id, partition, data)
                    for topic_id, partition, batches in output.appended
                    for data in batches
                )

    def _take_documents(self, now: dict[str, Any]) -> None:
        for key, value in now.items():
            if self._documents.get(key) != value:
                self._taken.append(Document(key, value))
                self._documents[key] = value
        gone = [key for key in self._documents if key not in now]
        for key in gone:
            self._taken.append(Document(key, None))
            del self._documents[key]

    def flush(self) -> None:
        """Write what was taken, as the policy says.

        Raises ``DataUnwritable``. After that, none of the accepted records may be acknowledged. A
        disk that failed once is not used again, because its content is unknown. After ``close`` it
        raises ``RuntimeError``.
        """
        if self._failure is not None:
            raise self._failure
        if self._lock.closed:
            raise RuntimeError(f"the broker of the data folder {self._path} is closed")
        try:
            self._write()
        except OSError as err:
            self._failure = DataUnwritable(err.errno, err.strerror or str(err), str(self._path))
            raise self._failure from err

    def _write(self) -> None:
        if self._taken:
            self._file.append(self._taken)
            self._taken = []
            if self._fsync == "always":
                self._file.sync()
        if self._fsync == "second" and time.monotonic() - self._synced_s >= _SECOND_S:
            self._file.sync()
            self._synced_s = time.monotonic()
        if self._file.size_bytes > 2 * self._live_bytes + _GARBAGE_BYTES:
            self.rewrite()

    def rewrite(self) -> None:
        """Leave out of the file what does not count any more."""
        if self._disk is not None:
            before = self._file.size_bytes
            self._file.rewrite(self._everything(self._disk))
            self._live_bytes = self._file.size_bytes
            _log.info("%s: compacted from %d to %d bytes", self._path, before, self._live_bytes)

    def _everything(self, disk: Disk) -> Iterator[Entry]:
        for key, value in documents_of(disk).items():
            yield Document(key, value)
        for (topic_id, partition), log in disk.logs.all():
            for batch in log.batches:
                yield Batch(topic_id, partition, batch.data)

    def close(self) -> None:
        """Write what is left and let go of the folder. Calling it twice is harmless."""
        if self._lock.closed:
            return
        with contextlib.suppress(OSError):
            self.flush()
            self._file.sync()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the folder without writing anything."""
        self._file.close()
        self._lock.close()


def _may_write(event: Input) -> bool:
    """Whether an input may change what documents say. Topics, leaders and producer ids have
    counters of their own."""
    return isinstance(event, RequestReceived) and writes_documents(type(event.request))


def _locked(path: Path) -> BinaryIO:
    """Raises ``ConfigError`` when another process has the folder."""
    file = path.open("ab")
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:  # Windows: two processes on one folder are the user's own care
        return file
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        file.close()
        raise ConfigError(f"the data folder {path.parent} is used by another process") from err
    return file
