"""What batches look like, and the pace."""

from __future__ import annotations

from typing import Final

from kip848_client.core.fetch import _walk
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.fetch._walk import _Aborting
from kip848_client.records._list_batch import ListBatch
from tests.known_bugs.rows import KnownBug, Proof
from tests.support.planting import Plant
from tests.unit.consumer import test_record_path
from tests.unit.fetching import (
    test_core_leaders,
    test_core_pace,
    test_core_progress,
    test_core_records,
    test_core_sessions,
    test_walk,
)
from tests.unit.mock_coordinator import test_fetch
from tests.unit.records import test_reader

__all__ = ["PACE", "RECORDS"]

_BY_COUNT: Final = Plant(
    _walk,
    "_batch",
    "return BatchRef(at, end, base, after, count",
    "return BatchRef(at, end, base, base + count, count",
)
_SKIPPED_STAY: Final = Plant(
    _walk,
    "walk",
    "if batch.next_offset > next_offset:",
    "if batch.next_offset > next_offset and not batch.skip:",
)
_BEYOND_IS_NO_MATTER: Final = Plant(
    Answers,
    "_on_partition",
    "if self._settings.read_committed and 0 <= told",
    "if False and 0 <= told",
)

RECORDS: Final = (
    KnownBug(
        "sarama #1005; sarama #2053",
        "A compacted batch has lost its last records, or all: reading stops there for ever",
        "goes on after the last offset of the batch",
        (
            Proof(
                test_core_records.test_a_compacted_batch_without_records_moves_the_position,
                (_BY_COUNT,),
            ),
            Proof(test_core_records.test_a_lost_last_record_moves_the_position, (_BY_COUNT,)),
        ),
    ),
    KnownBug(
        "aiokafka #781; platformatic #391",
        "An answer begins with the marker of an abort, and the client crashes",
        "needs nothing from before the answer",
        (
            Proof(
                test_walk.TestAborted().test_an_answer_that_begins_with_the_marker,
                (
                    Plant(
                        _Aborting, "drops", "if producer_id in self._producers and _is", "if _is"
                    ),
                    Plant(_Aborting, "drops", "_producers.discard", "_producers.remove"),
                ),
                crash=KeyError,
            ),
        ),
    ),
    KnownBug(
        "kafkajs #403; kafkajs #1256",
        "An answer has control batches only: the offset does not move, or cannot be committed",
        "moves the position past them, and commits that",
        (
            Proof(
                test_walk.TestOrdinary().test_control_batches_are_skipped_whatever_the_isolation,
                (_SKIPPED_STAY,),
            ),
            Proof(
                test_record_path.test_a_slice_without_records_moves_the_position, (_SKIPPED_STAY,)
            ),
        ),
    ),
    KnownBug(
        "pinot #12318; pinot #18337; librdkafka #2993",
        "An answer is full of aborted batches only: the position does not move, or the user gets "
        "an error",
        "moves the position without a record",
        (
            Proof(
                test_core_records.test_aborted_batches_and_markers_alone_move_the_position,
                (_SKIPPED_STAY,),
            ),
        ),
    ),
    KnownBug(
        "klag-exporter #104",
        "The end is asked for with the wrong isolation: the lag of read_committed never ends",
        "asks with the isolation of the consumer",
        (
            Proof(
                test_core_progress.test_the_end_that_a_user_asks_for_has_his_isolation,
                (
                    Plant(
                        Queries,
                        "asked_by_user",
                        "read_committed=self._settings.read_committed",
                        "read_committed=False",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "sarama #1657",
        "The last batch of an answer is cut at the limit, which is taken for damage, or makes the "
        "partition rest",
        "leaves it for the next fetch",
        (
            Proof(
                test_core_records.test_a_cut_last_batch_is_no_error,
                (Plant(_walk, "walk", "if total and not at and not wrong:", "if at < total:"),),
            ),
            Proof(
                test_core_records.test_a_cut_last_batch_is_no_error,
                (
                    Plant(
                        Answers,
                        "_on_records",
                        "self._planner.refresh(now_ms, partition)\n        return bool",
                        "self._troubles.rest_quietly(now_ms, partition)\n"
                        "            self._planner.refresh(now_ms, partition)\n"
                        "        return bool",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "large processes",
        "A list of record objects is kept: in a process where much else is alive that costs 20 "
        "times the reading",
        "makes a record when it is asked for",
        (
            Proof(
                test_reader.test_a_record_comes_into_being_when_it_is_asked_for,
                (
                    Plant(
                        ListBatch,
                        "_open",
                        "self._raws = decoded(",
                        "self._raws = (lambda raw: iter(list(decoded(raw))))(",
                    ),
                ),
                (False,),
            ),
        ),
    ),
)

PACE: Final = (
    KnownBug(
        "sarama #1759",
        "Under read_committed answers come at once and empty, and the client asks in a tight loop",
        "rests, the longer the more often in a row",
        (
            Proof(
                test_core_pace.test_answers_that_come_early_and_bring_nothing_are_paced,
                (Plant(Answers, "_end", "elif not taking.is_throttled:", "elif False:"),),
            ),
        ),
    ),
    KnownBug(
        "real brokers",
        "A position between the last stable offset and the high watermark: brokers answer at once, "
        "empty and without an error, for ever, and all neighbours are slowed down with it",
        "lets that partition rest alone",
        (
            Proof(
                test_core_pace.test_beyond_the_last_stable_offset_a_partition_rests_by_itself,
                (_BEYOND_IS_NO_MATTER,),
            ),
            Proof(
                test_core_progress.test_beyond_the_last_stable_offset_a_partition_rests_alone,
                (_BEYOND_IS_NO_MATTER,),
            ),
        ),
        (test_fetch.test_beyond_what_is_decided_nothing_is_waited_for,),
    ),
    KnownBug(
        "KAFKA-19259",
        "An empty answer does not wake who sends the next fetch",
        "looks after every event at what can be sent",
        (
            Proof(
                test_core_sessions.test_an_empty_answer_is_followed_by_the_next_request,
                (
                    Plant(
                        FetchCore,
                        "step",
                        "if not self._closed:",
                        "is_answer = isinstance(event, ev.FetchAnswered)\n"
                        "        empty = is_answer and not event.answer.partitions\n"
                        "        if not self._closed and not empty:",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-2978",
        "What is fetched and what is consumed get out of step, and reading stops",
        "asks for what follows the buffer, and the buffer follows the position",
        (
            Proof(
                test_core_records.test_slices_adjoin_whatever_happens,
                (
                    Plant(
                        Answers,
                        "_on_records",
                        "partition.fetch_offset, partition.fetch_epoch = after, epoch",
                        "partition.fetch_offset, partition.fetch_epoch = after + 1, epoch",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "KIP-81; zio-kafka #918; Dekaf #2257",
        "Memory grows with the number of partitions",
        "has one budget in bytes for all, of which a request reserves its part",
        (
            Proof(
                test_core_pace.test_what_is_buffered_and_asked_for_stays_in_the_budget,
                (Plant(Planner, "_grant", "return 0", "return limit"),),
            ),
        ),
    ),
    KnownBug(
        "Dekaf #1356",
        "All brokers are asked in lockstep, and the slowest rules",
        "asks each by itself",
        (
            Proof(
                test_core_leaders.test_brokers_do_not_wait_for_each_other,
                (Plant(Planner, "plan", "if node.fetch is None and", "if not self._open and"),),
            ),
        ),
    ),
)
