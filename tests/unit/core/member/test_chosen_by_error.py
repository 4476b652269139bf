"""COMPUTE_ASSIGNMENT as the error of a heartbeat: the draft's other form of the boolean."""

from __future__ import annotations

import pytest

from kip848_client.connect.core import heartbeat_outcome as outcome_of_worker
from kip848_client.core.group_wire.heartbeat import heartbeat_outcome as outcome_of_consumer
from kip848_client.core.member import (
    AssignorNews,
    AssignorsHeard,
    Fenced,
    HeartbeatAccepted,
    HeartbeatRefused,
    MemberState,
    Report,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatResponse,
    ConnectGroupHeartbeatResponseAssignment,
    ConnectGroupItems,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kip848_client.error_codes import ErrorCode
from tests.unit.core.member._harness import MemberHarness, in_state

COMPUTE = ErrorCode.COMPUTE_ASSIGNMENT
SESSION_MS = 12_000


def test_an_answer_that_says_everything_is_taken_as_one_without_an_error() -> None:
    items = (ConnectGroupItems(connector="a", generation=1, runs_connector=True),)
    given = ConnectGroupHeartbeatResponseAssignment(items=items, version=2, metadata=b"x")
    answer = ConnectGroupHeartbeatResponse(
        error_code=COMPUTE, member_epoch=4, heartbeat_interval_ms=500, assignment=given
    )
    outcome = outcome_of_worker(answer)
    assert isinstance(outcome, HeartbeatAccepted)
    assert (outcome.member_epoch, outcome.heartbeat_interval_ms) == (4, 500)
    assert outcome.assignment
    assert outcome.assignors is not None
    assert outcome.assignors.should_compute
    assert outcome.assignors.metadata == b"x"


def test_so_is_that_to_a_consumer_that_offers_assignors() -> None:
    answer = ConsumerGroupHeartbeatResponse(error_code=COMPUTE, member_epoch=4)
    outcome = outcome_of_consumer(answer, offers_assignors=True)
    assert isinstance(outcome, HeartbeatAccepted)
    assert outcome.assignors == AssignorNews(should_compute=True)
    plain = outcome_of_consumer(answer)
    assert isinstance(plain, HeartbeatAccepted)
    assert plain.assignors is None


def test_one_that_says_nothing_else_is_a_refusal() -> None:
    bare = ConnectGroupHeartbeatResponse(error_code=COMPUTE)
    assert isinstance(outcome_of_worker(bare), HeartbeatRefused)
    other = ConnectGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_epoch=4)
    assert isinstance(outcome_of_worker(other), HeartbeatRefused)


@pytest.mark.parametrize(
    "state", [MemberState.STABLE, MemberState.RECONCILING, MemberState.ACKNOWLEDGING]
)
def test_a_member_goes_on_and_is_told_to_compute(state: MemberState) -> None:
    harness = in_state(state)
    epoch, had = harness.core.commit_epoch, harness.core.assigned
    if state is not MemberState.ACKNOWLEDGING:
        harness.next_heartbeat()

    harness.refuse(COMPUTE)

    [heard] = harness.out(AssignorsHeard)
    assert heard.news == AssignorNews(should_compute=True)
    assert heard.member_epoch == epoch == harness.core.commit_epoch
    assert harness.core.assigned == had
    assert harness.core.fatal_error is None
    assert not harness.out(Fenced)
    assert not harness.out(Report)
    assert harness.next_heartbeat().is_complete  # nobody knows what the coordinator took


def test_the_session_goes_on() -> None:
    harness = MemberHarness(session_timeout_ms=SESSION_MS).stable(epoch=4).calm(epoch=4)
    for _ in range(10):
        harness.next_heartbeat()
        harness.advance(2_000)
        harness.refuse(COMPUTE)
    assert not harness.out(Fenced)
    assert harness.core.commit_epoch == 4


def test_a_join_is_repeated() -> None:
    """Whoever is not in the group yet cannot compute for it."""
    harness = in_state(MemberState.JOINING)
    harness.refuse(COMPUTE)
    assert not harness.out(AssignorsHeard)
    harness.expect(MemberState.JOINING)
    assert harness.next_heartbeat().member_epoch == 0
