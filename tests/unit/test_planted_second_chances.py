"""Bugs in what clients remember and ask again, each put in on purpose: a test that looks for it
fails. Each is a pair of rare events, or a request that is repeated and differs from the first."""

from __future__ import annotations

import pytest

from kip848_client.admin._request_router import RequestRouter
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.produce._answers import Answers
from kip848_client.core.produce._sender import Sender
from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.produce._transaction_requests import Requests
from kip848_client.error_codes import ErrorCode
from tests.support.planting import Plant, PlantedBug
from tests.unit.admin import test_leaders as admin_leaders
from tests.unit.core.fetch import test_core_replicas as replicas
from tests.unit.core.produce import test_answers as answers
from tests.unit.core.produce import test_core_transactions as core_transactions
from tests.unit.core.produce import test_topics as topics
from tests.unit.core.produce import test_transaction_lives as lives
from tests.unit.core.produce import test_transaction_time_outs as time_outs

BUGS = {
    "a dropped batch that was refused once leaves no gap in the sequence": PlantedBug(
        Plant(
            Answers,
            "drop",
            "        self._hole(self._accumulator.partitions[batch.tp], batch)\n",
            "",
        ),
        core_transactions.test_v1_takes_another_epoch_when_a_refused_batch_is_dropped,
    ),
    "an abort that was fenced asks a second time under the old epoch": PlantedBug(
        Plant(Transactions, "_go_on_aborting", "self._txn.asks_as or self.who", "self.who"),
        time_outs.test_a_forgotten_time_out_is_found_out_by_an_abort,
        {"level": 1},
    ),
    "a commit that was lost is not in doubt when the next try never left": PlantedBug(
        Plant(
            Requests,
            "_doubt",
            "job.in_doubt = job.in_doubt or maybe_done",
            "job.in_doubt = maybe_done",
        ),
        time_outs.test_a_commit_that_was_lost_stays_in_doubt_when_the_next_try_does_nothing,
        {"level": 2, "code": None},
    ),
    "an abort does not end what a lost addition may have opened": PlantedBug(
        Plant(
            Requests,
            "_doubt",
            "job.api in (Api.ADD_PARTITIONS, Api.ADD_OFFSETS)",
            "job.api is Api.END_TRANSACTION",
        ),
        lives.test_an_abort_ends_what_a_lost_addition_may_have_opened,
        {"what": "partition"},
    ),
    "what a refused try may have written is sent under other numbers": PlantedBug(
        Plant(Answers, "_refused", "            batch.doubt |= may_be_written(code)\n", ""),
        answers.test_what_a_first_try_may_have_written_is_not_sent_under_other_numbers,
        {"code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "may_be_there": True},
    ),
    "what an answer leaves out is taken for not written": PlantedBug(
        Plant(
            Answers,
            "answered",
            "                batch.doubt = True\n                self._again",
            "                self._again",
        ),
        answers.test_what_a_first_try_may_have_written_is_not_sent_under_other_numbers,
        {"code": None, "may_be_there": True},
    ),
    "a second harm makes the first one's question forgotten": PlantedBug(
        Plant(
            Transactions,
            "_on_harm",
            "self._txn.is_asking or reaction is Reaction.ASK",
            "reaction is Reaction.ASK",
        ),
        time_outs.test_another_harm_does_not_end_the_question,
    ),
    "a second harm spares the epoch that the first one needs": PlantedBug(
        Plant(
            Transactions,
            "_on_harm",
            "self._txn.needs_bump or reaction is Reaction.ABORT_AND_BUMP",
            "reaction is Reaction.ABORT_AND_BUMP",
        ),
        time_outs.test_another_harm_does_not_spare_the_epoch,
    ),
    "a topic that was created again is taken to know this producer": PlantedBug(
        Plant(Sender, "_take", "                sequences.acknowledged = -1\n", ""),
        topics.test_of_a_topic_that_was_created_again_one_batch_is_on_its_way_until_it_is_known,
        {"is_told": True},
    ),
    "a replica is avoided in another cluster, too": PlantedBug(
        Plant(
            FetchCore,
            "_on_cluster",
            "partition.led_by = partition.read_from = partition.avoided = NO_NODE",
            "pass",
        ),
        replicas.test_of_another_cluster_no_replica_is_avoided,
    ),
    "offsets are looked up again under the old epoch": PlantedBug(
        Plant(RequestRouter, "of_leaders", "epochs[tp] = epoch", "epochs.setdefault(tp, epoch)"),
        admin_leaders.test_a_leader_that_moves_is_asked_again_under_its_new_epoch,
        {"leader": 2},
    ),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_bug_is_seen(monkeypatch: pytest.MonkeyPatch, bug: PlantedBug) -> None:
    bug.is_found(monkeypatch)
