"""Laws of the difference between what is held and what is wanted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.member._model import group_by_topic, sanitise
from kip848_client.core.member._reconcile import Acknowledge, AssignmentState, Held, Plan, next_step
from kip848_client.core.types import TopicId, TopicIdPartition
from tests.support.examples import examples

TOPICS = [TopicId(bytes([n]) * 16) for n in range(4)]
partition = st.tuples(st.sampled_from(TOPICS), st.integers(0, 3))
partitions = st.frozensets(partition, max_size=10)
topics = st.frozensets(st.sampled_from(TOPICS))
raw = st.lists(
    st.tuples(st.sampled_from(TOPICS), st.lists(st.integers(-2, 5), max_size=4).map(tuple)),
    max_size=5,
).map(tuple)


def named(known: frozenset[TopicId]) -> dict[TopicId, str]:
    return {topic: topic.hex()[:2] for topic in sorted(known)}


@given(raw)
def test_cleaning_up_is_idempotent_and_keeps_every_valid_partition(
    assignment: tuple[tuple[TopicId, tuple[int, ...]], ...],
) -> None:
    clean = sanitise(assignment)
    valid = {(topic, p) for topic, numbers in assignment for p in numbers if p >= 0}
    assert clean == valid
    grouped = group_by_topic(clean)
    assert sanitise(grouped) == clean
    assert list(grouped) == sorted(grouped)
    assert all(list(numbers) == sorted(set(numbers)) for _, numbers in grouped)


@settings(max_examples=examples(300))
@given(target=partitions, assigned=partitions, known=topics, nameless=topics, failed=st.booleans())
def test_a_plan_takes_exactly_what_must_go(
    target: frozenset[TopicIdPartition],
    assigned: frozenset[TopicIdPartition],
    known: frozenset[TopicId],
    nameless: frozenset[TopicId],
    failed: bool,
) -> None:
    held = Held(target, 7)
    current = Held(assigned, 3)
    names = named(known | {p[0] for p in assigned})
    step = next_step(held, current, assigned, names, nameless, callback_failed=failed)
    resolved = {p for p in target if p[0] in names}
    match step:
        case Plan():
            assert step.revoked == assigned - target
            assert step.target == held
            assert step.revoked or resolved - assigned or failed
        case Acknowledge():
            assert not failed
            assert step.held == Held(frozenset(resolved), 7)
            assert resolved == assigned
        case None:
            assert not assigned - target, "what must go never waits"
            assert any(p[0] not in names and p[0] not in nameless for p in target)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(partitions, topics, st.booleans(), st.booleans()), max_size=12))
def test_an_assignment_follows_any_sequence_of_targets(
    story: list[tuple[frozenset[TopicIdPartition], frozenset[TopicId], bool, bool]],
) -> None:
    """Each target is carried out with callbacks that may fail; at the end, names known and
    callbacks well, the assignment meets the last one. What a failed call was to give is given again
    (and not fetched before); what a call gave is not given twice.
    """
    state = AssignmentState()
    given: set[TopicIdPartition] = set()
    revision = -1
    everything = named(frozenset(TOPICS))

    def carry_out(plan: Plan, *, release_fails: bool, start_fails: bool) -> None:
        state.hold_back(plan.revoked)
        if plan.revoked:
            state.release(plan.revoked)
            state.released(failed=release_fails)
            if release_fails:
                return
            given.difference_update(plan.revoked)
        held, added = state.start(plan.target)
        assert not added & given
        assert added | given == held.partitions
        state.started(held, failed=start_fails)
        if not start_fails:
            given.update(added)

    def settle(*, release_fails: bool, start_fails: bool) -> None:
        step = state.next_step()
        if isinstance(step, Plan):
            carry_out(step, release_fails=release_fails, start_fails=start_fails)
        elif isinstance(step, Acknowledge):
            state.acknowledge(step.held)

    for target, known, release_fails, start_fails in story:
        state.retarget(target)
        assert state.target is not None
        assert state.target.revision >= revision
        revision = state.target.revision
        state.name(state.unresolved(), named(known))
        settle(release_fails=release_fails, start_fails=start_fails)
        assert state.fetchable <= state.assigned
        assert state.fetchable <= given == state.assigned - state.unprepared
    if story:
        state.name(state.unresolved(), everything)
        settle(release_fails=False, start_fails=False)
        assert state.is_met
        assert state.assigned == state.fetchable == story[-1][0]
        assert state.next_step() is None
