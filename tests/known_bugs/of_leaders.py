"""Leaders, logs that were cut, and replicas."""

from __future__ import annotations

from typing import Final

from kip848_client.consumer._record_path import RecordPath
from kip848_client.core.cluster import _leaders
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._model import EpochEnd
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.fetch._replicas import Replicas
from kip848_client.core.group_wire import offsets as _offsets_wire
from kip848_client.error_codes import ErrorCode
from tests.known_bugs.rows import KnownBug, Proof
from tests.support.planting import Plant
from tests.unit.consumer import test_offsets_wire, test_record_path
from tests.unit.core.fetch import (
    test_core_leaders,
    test_core_range,
    test_core_replicas,
    test_core_truncation,
)
from tests.unit.mock_coordinator import test_fetch

__all__ = ["LEADERS", "REPLICAS", "TRUNCATION"]

_NO_TENURES: Final = (
    Plant(Answers, "_take", "partition.generation != node.generations.get(key)", "False"),
    Plant(Answers, "_take", "partition.fetch_offset != taking.asked[key].offset", "False"),
)

LEADERS: Final = (
    KnownBug(
        "franz-go #1331",
        "A partition temporarily has no leader, the client accepts its epoch -1, and truncation "
        "is no longer detected",
        "treats -1 as unknown, and keeps its last epoch",
        (
            Proof(
                test_core_leaders.test_a_partition_without_a_leader_keeps_its_epoch,
                (Plant(_leaders, "_newest", "if new.epoch < 0:", "if True:"),),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #4425; librdkafka #4433",
        "The leader changes twice in a row, and the client keeps using the epoch of the first "
        "change",
        "reads the epoch when it creates a request",
        (
            Proof(
                test_core_leaders.test_the_epoch_is_the_one_of_the_moment_when_a_request_is_built,
                (
                    Plant(
                        Planner,
                        "_want",
                        "else leader.epoch",
                        "else vars(self).setdefault(f'{partition.key}', leader.epoch)",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #4901",
        "Metadata has another leader with the same epoch, and the client ignores it",
        "accepts it, because brokers correct themselves in this way",
        (
            Proof(
                test_core_leaders.test_the_same_epoch_with_another_leader_is_taken,
                (
                    Plant(
                        _leaders, "_newest", "new.epoch >= before.epoch", "new.epoch > before.epoch"
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #4804; librdkafka #4680",
        "Metadata of a lagging broker has a former leader, and the client accepts it",
        "ignores lower epochs",
        (
            Proof(
                test_core_leaders.test_epochs_do_not_go_back,
                (Plant(_leaders, "_newest", "new.epoch >= before.epoch", "True"),),
            ),
        ),
    ),
)

TRUNCATION: Final = (
    KnownBug(
        "librdkafka #4492",
        "A partition never finishes validating its position",
        "does not have such a state: each fetch validates the position, and an out-of-range "
        "position is checked at the leader and kept or reset",
        (
            Proof(
                test_core_truncation.test_an_end_that_says_nothing_is_looked_into,
                (Plant(PositionChanges, "_on_result", "partition.phase = Phase.READY", "pass"),),
                (EpochEnd(-1, -1),),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #5158",
        "The log was truncated below a committed offset while no consumer was reading, and this "
        "is not detected",
        "sends the epoch of the committed offset with the first fetch",
        (
            Proof(
                test_core_truncation.test_a_committed_offset_is_checked_by_the_first_fetch,
                (
                    Plant(
                        PositionChanges,
                        "_stand",
                        "at.offset, at.leader_epoch)\n",
                        "at.offset, -1)\n",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-8429",
        "A seek during a check of the position is overwritten by the result of the check",
        "drops results for an earlier position",
        (
            Proof(
                test_core_truncation.test_a_seek_in_the_middle_of_a_check_wins,
                (
                    Plant(PositionChanges, "drop", "self._positions.forget(partition.tp)", "pass"),
                    Plant(
                        PositionChanges,
                        "_on_result",
                        "partition.generation != result.generation",
                        "False",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #4261",
        "An answer from before a truncation is used after it, and records are duplicated",
        "drops answers of another generation of the partition",
        (
            Proof(
                test_core_range.test_an_answer_from_before_a_truncation_is_not_used,
                _NO_TENURES,
            ),
        ),
    ),
    KnownBug(
        "KAFKA-9840",
        "The end of an epoch is -1 (unknown) and is used as an offset",
        "requests the range of the leader's log",
        tuple(
            Proof(
                test_core_truncation.test_an_end_that_says_nothing_is_looked_into,
                (
                    Plant(
                        Answers,
                        "_on_diverging",
                        "if end.epoch < 0 or end.end_offset < 0:",
                        "if False:",
                    ),
                ),
                (end,),
            )
            for end in (EpochEnd(-1, -1), EpochEnd(-1, 3))
        ),
    ),
    KnownBug(
        "KAFKA-19902",
        "Offsets are committed without their leader epoch: a later truncation looks like an "
        "out-of-range position, and all records are read again",
        "commits the epoch of the last record",
        (
            Proof(
                test_core_range.test_a_position_carries_the_epoch_of_the_record_before_it,
                (
                    Plant(
                        FetchCore, "position_epoch", "else cursor.consumed_epoch", "else NO_EPOCH"
                    ),
                ),
            ),
            Proof(
                test_record_path.test_a_slice_without_records_moves_the_position,
                (
                    Plant(
                        RecordPath,
                        "report",
                        "self._tracker.delivered(tp, position, epoch)",
                        "self._tracker.delivered(tp, position)",
                    ),
                ),
            ),
            Proof(
                test_offsets_wire.test_a_commit_of_a_member,
                (
                    Plant(
                        _offsets_wire,
                        "commit_request",
                        "committed_leader_epoch=wanted.leader_epoch",
                        "committed_leader_epoch=-1",
                    ),
                ),
                (9,),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-12996",
        "A position below the start of the log, with an old epoch, is treated as a truncation",
        "treats it as out of range, as the brokers report",
        (
            Proof(
                test_core_truncation.test_a_position_below_the_log_is_out_of_range_not_cut_off,
                (
                    Plant(
                        Answers,
                        "_on_partition",
                        "if told.error_code:",
                        "if told.error_code and reaction(told.error_code).check:\n"
                        "            end = EpochEnd(0, max(0, told.log_start_offset))\n"
                        "            self._on_diverging(now_ms, partition, end)\n"
                        "            return True\n"
                        "        if told.error_code:",
                    ),
                ),
            ),
        ),
        (test_fetch.test_a_client_before_the_log_is_out_of_range_whatever_it_has_read,),
    ),
)

REPLICAS: Final = (
    KnownBug(
        "librdkafka #4616; librdkafka #4754",
        "A follower returns OFFSET_OUT_OF_RANGE, and the client requests offsets from the "
        "follower, which refuses, in a loop",
        "goes to the leader, and fetches records first",
        (
            Proof(
                test_core_replicas.test_a_replica_that_refuses_is_left_for_the_leader_and_avoided,
                (
                    Plant(
                        Answers,
                        "_on_error",
                        "elif self._is_replica(now_ms, node, partition):",
                        "elif not rule.check and self._is_replica(now_ms, node, partition):",
                    ),
                ),
                (ErrorCode.OFFSET_OUT_OF_RANGE,),
            ),
            Proof(
                test_core_replicas.test_out_of_range_at_the_leader_is_asked_of_the_leader,
                (Plant(Queries, "_send", "self._number, node, wanted", "self._number, 2, wanted"),),
            ),
            Proof(
                test_core_replicas.test_a_leader_that_names_one_all_the_same_is_paced,
                (
                    Plant(
                        Replicas,
                        "named",
                        "if self.avoids(now_ms, partition):",
                        "if False:",
                    ),
                ),
                ((2,),),
            ),
        ),
    ),
    KnownBug(
        "the simulation",
        "A replica failed, and requests to the leader still have the client's rack: the leader "
        "names that replica again at once, and nothing is read",
        "omits the rack while a partition of the request avoids its replica",
        (
            Proof(
                test_core_replicas.test_a_replica_that_refuses_is_left_for_the_leader_and_avoided,
                (Plant(Planner, "_send", '"" if avoiding else settings.rack', "settings.rack"),),
                (ErrorCode.OFFSET_OUT_OF_RANGE,),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #2830",
        "The client keeps fetching from a replica that returns NOT_LEADER_OR_FOLLOWER",
        "goes back to the leader",
        (
            Proof(
                test_core_replicas.test_a_replica_that_refuses_is_left_for_the_leader_and_avoided,
                (Plant(Replicas, "failed", "partition.read_from = NO_NODE", "pass"),),
                (ErrorCode.NOT_LEADER_OR_FOLLOWER,),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-13767",
        "The leader names a nearer replica, and the client waits before it uses it",
        "fetches from it in the same step",
        (
            Proof(
                test_core_replicas.test_the_replica_is_asked_in_the_same_step,
                (
                    Plant(
                        Answers,
                        "_on_partition",
                        "if not self._planner.replicas.named(",
                        "if self._planner.replicas.named(",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-14372",
        "The client keeps reading from a lagging replica",
        "goes back to the leader when the lease ends",
        (
            Proof(
                test_core_replicas.test_the_lease_ends,
                (Plant(Replicas, "target", "now_ms < partition.lease_until_ms and ", ""),),
            ),
        ),
    ),
)
