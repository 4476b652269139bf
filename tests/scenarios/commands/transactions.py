"""producer, txn-commit, end: offsets that are committed with what a producer wrote."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.transaction_admin import DescribeTransactionsRequest
from kip848_client.core.wire.messages.transactions import EndTxnRequest, InitProducerIdRequest
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.scenarios.commands.offsets import identity, wanted_partitions
from tests.scenarios.notation import Arguments, NotationError
from tests.scenarios.scenario_run import DEFAULT_GROUP, ScenarioRun

__all__ = ["end", "producer", "txn_commit"]

_TRANSACTION: Final = 1
_TIMEOUT_MS: Final = 60_000
_NOT_READY: Final = (14, 15, 16, 51)
_ATTEMPTS: Final = 100
_COMMIT_BY_ID: Final = 6
"""First version of TxnOffsetCommit that names topics by id (KIP-1319)."""
_UNDER_WAY: Final = ("PrepareCommit", "PrepareAbort")


def _known(scenario: ScenarioRun, name: str) -> tuple[int, int]:
    if name not in scenario.producers:
        raise NotationError(f"there is no producer {name!r} yet")
    return scenario.producers[name]


def producer(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """InitProducerId: the producer's name is its transactional id.

    producer P
    """
    name = arguments.word("a producer")
    find = FindCoordinatorRequest(
        key_type=_TRANSACTION, coordinator_keys=(scenario.transactional_id(name),)
    )
    init = InitProducerIdRequest(
        transactional_id=scenario.transactional_id(name), transaction_timeout_ms=_TIMEOUT_MS
    )
    scenario.request(find, 4)
    answer: Any = scenario.request(init, 5)
    for _ in range(_ATTEMPTS):  # a coordinator that has just been created is loaded first
        if answer.error_code not in _NOT_READY:
            break
        scenario.backend.settle()
        answer = scenario.request(init, 5)
    if answer.error_code:
        return [scenario.error_text(answer.error_code)]
    scenario.producers[name] = (answer.producer_id, answer.producer_epoch)
    return [f"{name}: producer epoch {answer.producer_epoch}"]


def txn_commit(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """TxnOffsetCommit by a producer, with the id and epoch of a member; ``nobody`` names none.

    txn-commit P A foo[0]=10 foo[4]=11
    txn-commit P nobody foo[0]=10 version=4
    """
    producer_id, producer_epoch = _known(scenario, name := arguments.word("a producer"))
    group = arguments.text("group", DEFAULT_GROUP) or ""
    member_id, epoch = identity(scenario, arguments, group)
    version = arguments.number("version", 5)
    request = TxnOffsetCommitRequest(
        transactional_id=scenario.transactional_id(name),
        group_id=scenario.group_id(group),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id_or_member_epoch=epoch,
        member_id=member_id or "",
        group_instance_id=arguments.text("instance"),
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=topic if version < _COMMIT_BY_ID else "",
                topic_id=scenario.topic_id(topic) if version >= _COMMIT_BY_ID else bytes(16),
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset or 0, committed_metadata=""
                    )
                    for number in numbers
                ),
            )
            for topic, numbers, offset in wanted_partitions(arguments)
        ),
    )
    response = scenario.request(request, version)
    pieces = [
        f"{topic.name or scenario.topic_name(topic.topic_id)}[{each.partition_index}] "
        f"{scenario.error_text(each.error_code)}"
        for topic in response.topics
        for each in topic.partitions
    ]
    return [", ".join(sorted(pieces))]


def end(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """EndTxn, and wait until the markers are written.

    end P commit
    end P abort
    """
    producer_id, producer_epoch = _known(scenario, name := arguments.word("a producer"))
    outcome = arguments.word("commit or abort")
    if outcome not in ("commit", "abort"):
        raise NotationError(f"a transaction ends with commit or abort, not {outcome!r}")
    transactional_id = scenario.transactional_id(name)
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        committed=outcome == "commit",
    )
    answer = scenario.request(request, 5)
    if answer.error_code:
        return [scenario.error_text(answer.error_code)]
    scenario.producers[name] = (answer.producer_id, answer.producer_epoch)
    describe = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    for _ in range(_ATTEMPTS):
        found: Any = scenario.backend.request(describe, 0)
        if found.transaction_states[0].transaction_state not in _UNDER_WAY:
            break
        scenario.backend.settle()
    return [f"{name}: producer epoch {answer.producer_epoch}"]
