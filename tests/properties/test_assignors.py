"""Laws of the assignors, for any group and any consistent previous target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kip848_client.core.assignors import (
    BUILTIN,
    Assignment,
    GroupSpec,
    MemberSpec,
    Partitions,
    RangeAssignor,
    SubscriptionType,
    TimelineOrder,
    TopicMetadata,
    UniformAssignor,
    member_order,
    partition_order,
    same_partitions,
    string_set_order,
)
from kip848_client.core.types import MemberId, TopicId

# No time limit for one example: the laws are about results, and the machine may be busy.
law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

HOMOGENEOUS, HETEROGENEOUS = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS


@dataclass(frozen=True)
class Case:
    """A group and its topics."""

    group: GroupSpec
    topics: Mapping[TopicId, TopicMetadata]


@st.composite
def cases(draw: st.DrawFn, kind: SubscriptionType) -> Case:
    """Members with subscriptions, some instance ids, and a previous target without overlaps."""
    count = draw(st.integers(1, 6))
    ids = draw(st.lists(st.binary(min_size=16, max_size=16), min_size=count, max_size=count))
    topics = {
        TopicId(id_): TopicMetadata(f"t{number}", draw(st.integers(0, 40)))
        for number, id_ in enumerate(dict.fromkeys(ids))
    }
    known = list(topics)
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True))
    shared = tuple(draw(st.permutations(known)))
    subscriptions = [
        shared
        if kind is HOMOGENEOUS
        else tuple(draw(st.lists(st.sampled_from(known), unique=True, max_size=count)))
        for _ in names
    ]
    previous: list[dict[TopicId, list[int]]] = [{} for _ in names]
    if draw(st.booleans()):
        for topic_id, topic in topics.items():
            owners = draw(
                st.lists(
                    st.integers(-1, len(names) - 1),
                    min_size=topic.partition_count,
                    max_size=topic.partition_count,
                )
            )
            for partition, owner in enumerate(owners):
                if owner >= 0:
                    previous[owner].setdefault(topic_id, []).append(partition)
    members = {
        MemberId(name): MemberSpec(
            topic_ids=subscription,
            target={topic_id: tuple(partitions) for topic_id, partitions in target.items()},
            instance_id=f"i{number}" if draw(st.booleans()) else None,
        )
        for number, (name, subscription, target) in enumerate(
            zip(names, subscriptions, previous, strict=True)
        )
    }
    return Case(GroupSpec(members, kind), topics)


def any_case() -> st.SearchStrategy[Case]:
    return st.one_of(cases(HOMOGENEOUS), cases(HETEROGENEOUS))


def size(target: Partitions) -> int:
    return sum(map(len, target.values()))


def pairs(target: Partitions) -> set[tuple[TopicId, int]]:
    return {(topic_id, partition) for topic_id, numbers in target.items() for partition in numbers}


def with_targets(group: GroupSpec, result: Assignment) -> GroupSpec:
    """The group as it stands when its target has been applied."""
    members = {
        member_id: replace(member, target=result.members[member_id])
        for member_id, member in group.members.items()
    }
    return GroupSpec(members, group.subscription_type)


@law
@given(any_case(), st.sampled_from(sorted(BUILTIN)))
def test_every_subscribed_partition_has_exactly_one_owner_who_subscribes(
    case: Case, name: str
) -> None:
    result = BUILTIN[name].assign(case.group, case.topics)
    assert list(result.members) == list(case.group.members)
    given_out = [pair for target in result.members.values() for pair in sorted(pairs(target))]
    wanted = {t for member in case.group.members.values() for t in member.topic_ids}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == {
        (topic_id, partition)
        for topic_id in wanted
        for partition in range(case.topics[topic_id].partition_count)
    }
    for member_id, target in result.members.items():
        assert set(target) <= set(case.group.members[member_id].topic_ids)
        assert all(target.values()), "no topic without partitions"


@law
@given(any_case(), st.sampled_from(sorted(BUILTIN)))
def test_the_same_input_gives_the_same_result_in_the_same_order(case: Case, name: str) -> None:
    first = BUILTIN[name].assign(case.group, case.topics)
    again = BUILTIN[name].assign(case.group, case.topics)
    for member_id, target in first.members.items():
        assert list(target.items()) == list(again.members[member_id].items())


@law
@given(any_case(), st.sampled_from(sorted(BUILTIN)))
def test_a_member_that_keeps_its_partitions_gets_the_same_object_back(
    case: Case, name: str
) -> None:
    result = BUILTIN[name].assign(case.group, case.topics)
    for member_id, member in case.group.members.items():
        target = result.members[member_id]
        assert same_partitions(target, member.target) == (target is member.target)


@law
@given(cases(HOMOGENEOUS))
def test_uniform_is_balanced_within_one(case: Case) -> None:
    sizes = [size(t) for t in UniformAssignor().assign(case.group, case.topics).members.values()]
    assert max(sizes) - min(sizes) <= 1


@law
@given(cases(HOMOGENEOUS))
def test_uniform_moves_no_more_than_balance_needs(case: Case) -> None:
    """Members keep their quota, and only a partition above it changes hands."""
    result = UniformAssignor().assign(case.group, case.topics)
    sizes = [size(target) for target in result.members.values()]
    held = [size(member.target) for member in case.group.members.values()]
    quota, extras = divmod(sum(sizes), len(sizes))
    needed = sum(max(0, had - quota) for had in held)
    spared = min(extras, sum(1 for had in held if had > quota))
    moved = sum(
        len(pairs(member.target) - pairs(result.members[member_id]))
        for member_id, member in case.group.members.items()
    )
    assert moved == needed - spared


@law
@given(cases(HETEROGENEOUS))
def test_heterogeneous_settles(case: Case) -> None:
    """Runs from its own result soon change nothing."""
    result = UniformAssignor().assign(case.group, case.topics)
    settled = with_targets(case.group, result)
    for _ in range(20):  # the first run may stop at its limit of rounds
        result = UniformAssignor().assign(settled, case.topics)
        if all(result.members[m] is settled.members[m].target for m in settled.members):
            return
        settled = with_targets(settled, result)
    raise AssertionError("does not settle")


@law
@given(cases(HOMOGENEOUS))
def test_uniform_from_its_own_result_changes_nothing(case: Case) -> None:
    result = UniformAssignor().assign(case.group, case.topics)
    again = UniformAssignor().assign(with_targets(case.group, result), case.topics)
    assert all(again.members[m] is result.members[m] for m in result.members)


@law
@given(cases(HETEROGENEOUS))
def test_topics_with_the_same_subscribers_are_balanced_within_one(case: Case) -> None:
    """Where every topic has the same subscribers, the heterogeneous builder balances like the
    homogeneous one."""
    first = next(iter(case.group.members.values())).topic_ids
    members = {m: replace(spec, topic_ids=first) for m, spec in case.group.members.items()}
    result = UniformAssignor().assign(GroupSpec(members, HETEROGENEOUS), case.topics)
    sizes = [size(target) for target in result.members.values()]
    assert max(sizes) - min(sizes) <= 1


@law
@given(any_case())
def test_range_blocks_are_contiguous_and_differ_by_one(case: Case) -> None:
    result = RangeAssignor().assign(case.group, case.topics)
    for topic_id in case.topics:
        subscribers = [m for m, s in case.group.members.items() if topic_id in s.topic_ids]
        blocks = [sorted(result.members[m].get(topic_id, ())) for m in subscribers]
        for block in blocks:
            assert not block or block == list(range(block[0], block[-1] + 1))
        assert not blocks or max(map(len, blocks)) - min(map(len, blocks)) <= 1


@law
@given(any_case())
def test_range_ignores_the_order_of_members(case: Case) -> None:
    backwards = GroupSpec(
        dict(reversed(list(case.group.members.items()))), case.group.subscription_type
    )
    assigned = RangeAssignor().assign(case.group, case.topics)
    assert RangeAssignor().assign(backwards, case.topics).members == assigned.members


# --- Orders ---------------------------------------------------------------------------------------


@law
@given(st.lists(st.text(max_size=10)))
def test_string_set_order_is_a_permutation_of_the_distinct(texts: list[str]) -> None:
    assert sorted(string_set_order(texts)) == sorted(set(texts))


@law
@given(st.lists(st.integers(0, 5000), unique=True))
def test_partition_order_is_a_permutation_and_stable_under_copying(numbers: list[int]) -> None:
    once = partition_order(numbers)
    assert sorted(once) == sorted(numbers)
    assert sorted(partition_order(once)) == sorted(numbers)


@law
@given(st.lists(st.tuples(st.booleans(), st.text(max_size=3))))
def test_the_timeline_holds_what_a_set_would(steps: list[tuple[bool, str]]) -> None:
    timeline, model = TimelineOrder(), set[str]()
    for put, key in steps:
        if put:
            timeline.put(key)
            model.add(key)
        else:
            timeline.remove(key)
            model.discard(key)
        assert len(timeline) == len(model)
    assert sorted(timeline) == sorted(model)
    assert sorted(member_order(map(MemberId, timeline))) == sorted(model)
