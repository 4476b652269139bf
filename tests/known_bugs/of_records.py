"""What batches look like, and the pace."""

from __future__ import annotations

from typing import Final

from kip848_client.core.fetch import _batch_headers
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._batch_headers import _Aborting
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._queries import Queries
from kip848_client.records._list_batch import ListBatch
from tests.known_bugs.rows import KnownBug, Proof
from tests.support.planting import Plant
from tests.unit.consumer import test_record_path
from tests.unit.core.fetch import (
    test_batch_headers,
    test_core_leaders,
    test_core_pace,
    test_core_progress,
    test_core_records,
    test_core_sessions,
)
from tests.unit.mock_coordinator import test_fetch
from tests.unit.records import test_reader

__all__ = ["PACE", "RECORDS"]

_BY_COUNT: Final = Plant(
    _batch_headers,
    "_batch",
    "return BatchRef(at, end, base, after, count",
    "return BatchRef(at, end, base, base + count, count",
)
_ORDINARY: Final = test_batch_headers.TestOrdinary()
_SKIPPED_STAY: Final = Plant(
    _batch_headers,
    "read_headers",
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
        "A compacted batch has lost its last records, or all: reading stops there",
        "continues after the last offset of the batch",
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
        "does not need data from before the answer",
        (
            Proof(
                test_batch_headers.TestAborted().test_an_answer_that_begins_with_the_marker,
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
        "An answer has only control batches: the offset does not advance, or cannot be committed",
        "advances the position past them, and commits it",
        (
            Proof(
                _ORDINARY.test_control_batches_are_skipped_whatever_the_isolation,
                (_SKIPPED_STAY,),
            ),
            Proof(
                test_record_path.test_a_slice_without_records_moves_the_position, (_SKIPPED_STAY,)
            ),
        ),
    ),
    KnownBug(
        "pinot #12318; pinot #18337; librdkafka #2993",
        "An answer has only aborted batches: the position does not advance, or the user gets an "
        "error",
        "advances the position without returning a record",
        (
            Proof(
                test_core_records.test_aborted_batches_and_markers_alone_move_the_position,
                (_SKIPPED_STAY,),
            ),
        ),
    ),
    KnownBug(
        "klag-exporter #104",
        "The end offset is requested with the wrong isolation level: the lag of read_committed "
        "never reaches 0",
        "uses the consumer's isolation level",
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
        "The last batch of an answer is truncated at the limit, and the client treats it as "
        "damage or backs off",
        "leaves it for the next fetch",
        (
            Proof(
                test_core_records.test_a_cut_last_batch_is_no_error,
                (
                    Plant(
                        _batch_headers,
                        "read_headers",
                        "if total and not at and not wrong:",
                        "if at < total:",
                    ),
                ),
            ),
            Proof(
                test_core_records.test_a_cut_last_batch_is_no_error,
                (
                    Plant(
                        Answers,
                        "_on_records",
                        "self._planner.refresh(now_ms, partition)\n        return bool",
                        "self._partition_errors.rest_quietly(now_ms, partition)\n"
                        "            self._planner.refresh(now_ms, partition)\n"
                        "        return bool",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "large processes",
        "The client keeps a list of record objects: in a process with many live objects that "
        "costs 20 times as much as reading",
        "creates each record on demand",
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
        "With read_committed, answers are immediate and empty, and the client fetches in a tight "
        "loop",
        "backs off, longer after each one in a row",
        (
            Proof(
                test_core_pace.test_answers_that_come_early_and_bring_nothing_are_paced,
                (Plant(Answers, "_end", "elif not taking.is_throttled:", "elif False:"),),
            ),
        ),
    ),
    KnownBug(
        "real brokers",
        "For a position between the last stable offset and the high watermark, brokers always "
        "answer at once, empty and without an error, and the backoff slows down all other "
        "partitions as well",
        "backs off only for that partition",
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
        "An empty answer does not trigger the next fetch",
        "checks after every event what can be sent",
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
        "The fetch position and the consumed position get out of step, and reading stops",
        "fetches from the end of the buffer, and the buffer follows the position",
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
        "has one budget in bytes for all partitions, and each request reserves a part of it",
        (
            Proof(
                test_core_pace.test_what_is_buffered_and_asked_for_stays_in_the_budget,
                (Plant(Planner, "_grant", "return 0", "return limit"),),
            ),
        ),
    ),
    KnownBug(
        "Dekaf #1356",
        "Fetches to all brokers run in lockstep, at the pace of the slowest",
        "fetches from each independently",
        (
            Proof(
                test_core_leaders.test_brokers_do_not_wait_for_each_other,
                (Plant(Planner, "plan", "if node.fetch is None and", "if not self._open and"),),
            ),
        ),
    ),
)
