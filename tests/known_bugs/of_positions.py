"""Positions, seeks and pauses."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._partition import Partition
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.records import Decoding, SliceReader
from kip848_client.records._list_batch import ListBatch
from tests.known_bugs.rows import KnownBug, Proof
from tests.support.planting import Plant
from tests.unit.core.fetch import test_core_application, test_core_errors, test_core_range
from tests.unit.records import test_reader

__all__ = ["PAUSES", "POSITIONS"]

_LOOKS_AGAIN: Final = Plant(
    FetchCore,
    "_on_application",
    "self._mark(partition, PAUSED, on=False)",
    "self._mark(partition, PAUSED, on=False)\n"
    "                    self._position_changes.drop(partition)\n"
    "                    self._position_changes.look(self._now, partition, by_policy=True)",
)
"""A resumed partition looks its position up again."""


def listed(slice_: Any, **decoding: Any) -> SliceReader:
    """A reader without the extension, in which nothing can be planted."""
    return SliceReader(slice_, Decoding(compiled=False, **decoding))


PAUSES: Final = (
    KnownBug(
        "KAFKA-7548; librdkafka #5343; alpakka-kafka #549",
        "A pause drops fetched records, and they are fetched again",
        "keeps them",
        (
            Proof(
                test_core_application.test_a_pause_keeps_what_is_buffered,
                (
                    Plant(
                        FetchCore,
                        "_on_application",
                        "self._mark(partition, PAUSED, on=True)",
                        "self._mark(partition, PAUSED, on=True)\n"
                        "                    here = StoredOffset(partition.consumed or 0)\n"
                        "                    changes = self._position_changes\n"
                        "                    changes.seek(self._now, partition, here)",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "Dekaf #2563; confluent-kafka-dotnet #2418",
        "Records fetched before a pause are returned after it",
        "returns no records after the call",
        (
            Proof(
                test_core_application.test_a_pause_keeps_what_is_buffered,
                (
                    Plant(
                        UnreadSlices,
                        "refresh",
                        "bool(partition.slices) and partition.readable",
                        "bool(partition.slices)",
                    ),
                ),
            ),
            Proof(
                test_core_application.test_the_cursor_says_it_in_the_same_step,
                (Plant(Partition, "mark", "self.cursor.readable = self.readable", "pass"),),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #3471",
        "After seek, pause and resume, reading continues at the old offset",
        "continues at the offset of the seek",
        (Proof(test_core_application.test_a_seek_survives_a_pause, (_LOOKS_AGAIN,)),),
    ),
    KnownBug(
        "librdkafka #5591",
        "After pause, assign and resume, the partition stays paused",
        "stores the pause as a state, not as a queued command",
        (
            Proof(
                test_core_application.test_a_resume_counts_whatever_was_assigned_since_the_pause,
                (
                    Plant(
                        FetchCore,
                        "_on_application",
                        "self._mark(partition, PAUSED, on=False)",
                        "self._mark(partition, PAUSED, on=True)",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #2593; librdkafka #4686",
        "Resuming a partition that is not paused drops fetched records or moves the position",
        "does nothing",
        (
            Proof(
                test_core_application.test_resuming_what_is_not_paused_changes_nothing,
                (_LOOKS_AGAIN,),
            ),
        ),
    ),
    KnownBug(
        "confluent-kafka-dotnet #672",
        "Resuming before the first record resets the position",
        "keeps it",
        (
            Proof(
                test_core_application.test_a_pause_before_the_first_record_keeps_the_position,
                (_LOOKS_AGAIN,),
            ),
        ),
    ),
)

POSITIONS: Final = (
    KnownBug(
        "KAFKA-2342; KAFKA-2632; FluidFramework #9404",
        "The answer to a fetch from before a reassignment moves the position",
        "drops it",
        (
            Proof(
                test_core_application.test_what_is_gone_is_gone,
                (
                    Plant(
                        Answers,
                        "_take",
                        "partition.generation != node.generations.get(key)",
                        "False",
                    ),
                    Plant(
                        Answers,
                        "_take",
                        "partition.fetch_offset != taking.asked[key].offset",
                        "False",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "Dekaf #2074",
        "The position is inside a batch, and the records before it are returned as well",
        "starts at the position",
        tuple(
            Proof(
                test_reader.test_nothing_before_the_position,
                (Plant(ListBatch, function, right, wrong),),
                (listed, way),
            )
            for function, right, wrong, way in (
                ("__iter__", "if offset < position:", "if False:", test_reader.one_by_one),
                ("__iter__", "if offset < position:", "if False:", test_reader.in_lists),
                ("_append_in_order", "max(base, position)", "base", test_reader.in_columns),
            )
        ),
    ),
    KnownBug(
        "aiokafka #261; aiokafka #718",
        "A position is out of range, and the partition never recovers",
        "resets it after the leader has confirmed this and earlier records were read",
        (
            Proof(
                test_core_errors.test_retention_overtook_us,
                (
                    Plant(
                        FetchCore,
                        "_on_buffer_read",
                        "if partition.phase is Phase.CHECKING:",
                        "if False:",
                    ),
                ),
                ("latest", 30),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #2625; librdkafka #3080",
        "The leader changes during a reset: the client keeps asking the old one, and sends the "
        "fetch with offset -1001",
        "asks the new leader at once, and does not fetch without a position",
        (
            Proof(
                test_core_range.test_leaders_that_move_during_a_reset_move_the_question,
                (Plant(Queries, "leaders_changed", "if moved:", "if False:"),),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-5075; KAFKA-5078",
        "An error is raised before earlier fetched records, which are lost",
        "returns these records first",
        (
            Proof(
                test_core_range.test_records_come_before_the_reset_that_follows_them,
                (Plant(PositionChanges, "look_into_check", "if not partition.slices and", "if"),),
            ),
            Proof(
                test_core_errors.test_records_come_before_the_error,
                (Plant(PartitionErrors, "next_untold", "if not partition.slices:", "if True:"),),
            ),
        ),
    ),
)
