"""Offsets of groups: read, committed without a member, removed, reset; offsets of partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kip848_client.admin._failures import all_of
from kip848_client.admin._groups import describe_groups
from kip848_client.admin._request_router import RequestRouter
from kip848_client.admin.core import _offset_wire as wire
from kip848_client.admin.core._model import CommittedOffset, ListedOffset
from kip848_client.admin.core._reset import (
    KnownOffsets,
    OffsetReset,
    ToPlan,
    new_offsets,
    time_wanted_ms,
)
from kip848_client.admin.core._retry_rounds import LATER, LOOK_UP_AGAIN, Refusal
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    AdminFailed,
    BrokerError,
    GroupIdNotFound,
    Kip848Error,
    LocalProtocolError,
    refusal,
)

__all__ = ["commit", "delete", "epoch_ends", "fetch", "list_offsets", "plan_reset"]

_ByPartition = Mapping[TopicPartition, Refusal | None]

_INACTIVE = frozenset({"Empty", "Dead"})
"""States in which offsets can be committed without a member."""


async def fetch(
    router: RequestRouter, groups: tuple[str, ...], deadline_ms: int, *, stable: bool = False
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Fetch all committed offsets of groups."""

    async def ask(
        node: int, targets: tuple[str, ...]
    ) -> Mapping[str, dict[TopicPartition, CommittedOffset] | Refusal]:
        request = wire.fetch_request(targets, stable=stable)
        return wire.fetched(await router.to(node, request, deadline_ms, wire.BY_NAME))

    done, failed = await router.of_coordinators(groups, ask, deadline_ms)
    return all_of("reading offsets of groups", done, failed)


async def commit(
    router: RequestRouter,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    deadline_ms: int,
) -> None:
    """Store offsets."""

    async def ask(node: int, _: tuple[str, ...]) -> Mapping[str, _ByPartition | Refusal]:
        request = wire.commit_request(group, offsets)
        answer = await router.to(node, request, deadline_ms, wire.BY_NAME)
        return {group: _of_the_group(wire.committed(answer))}

    done, failed = await router.of_coordinators((group,), ask, deadline_ms)
    _check(f"committing offsets of group {group!r}", group, sorted(offsets), done, failed)


async def delete(
    router: RequestRouter, group: str, partitions: Collection[TopicPartition], deadline_ms: int
) -> None:
    """Remove offsets."""

    async def ask(node: int, _: tuple[str, ...]) -> Mapping[str, _ByPartition | Refusal]:
        answer = await router.to(node, wire.deletion_request(group, partitions), deadline_ms)
        if answer.error_code:
            return {group: refusal(answer.error_code, None, "OffsetDelete")}
        return {group: _of_the_group(wire.removed(answer))}

    done, failed = await router.of_coordinators((group,), ask, deadline_ms)
    _check(f"deleting offsets of group {group!r}", group, sorted(partitions), done, failed)


def _check(
    what: str,
    group: str,
    partitions: Collection[TopicPartition],
    done: Mapping[str, _ByPartition],
    failed: Mapping[str, Kip848Error],
) -> None:
    """Raise ``AdminFailed`` by partition; an error of the group is one of each."""
    if group in failed:
        all_of(what, {}, dict.fromkeys(partitions, failed[group]))
    answers = done[group]
    errors = {tp: each for tp, each in answers.items() if each is not None}
    all_of(what, {tp: None for tp, each in answers.items() if each is None}, errors)


def _of_the_group(answers: _ByPartition) -> _ByPartition | Refusal:
    """Return a coordinator's error that was reported per partition, if there is one."""
    for each in answers.values():
        if isinstance(each, BrokerError) and each.code in LOOK_UP_AGAIN | LATER:
            return each
    return answers


async def list_offsets(
    router: RequestRouter,
    times: Mapping[TopicPartition, int],
    deadline_ms: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, ListedOffset]:
    """Look up offsets: each leader answers for its partitions."""
    epochs: dict[TopicPartition, int] = {}

    async def ask(
        node: int, targets: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, ListedOffset | Refusal]:
        wanted = {tp: times[tp] for tp in targets}
        left_ms = router.left_ms(deadline_ms)
        request = wire.list_request(wanted, left_ms, epochs, read_committed=read_committed)
        return wire.listed(await router.to(node, request, deadline_ms))

    done, failed = await router.of_leaders(sorted(times), ask, deadline_ms, epochs)
    return all_of("looking offsets up", done, failed)


async def epoch_ends(
    router: RequestRouter, epochs: Mapping[TopicPartition, int], deadline_ms: int
) -> dict[TopicPartition, int]:
    """Look up where leader epochs end: each leader answers for its partitions."""
    current: dict[TopicPartition, int] = {}

    async def ask(
        node: int, targets: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, int | Refusal]:
        request = wire.epoch_request({tp: epochs[tp] for tp in targets}, current)
        return wire.epoch_ends(await router.to(node, request, deadline_ms))

    done, failed = await router.of_leaders(sorted(epochs), ask, deadline_ms, current)
    return all_of("looking up the ends of leader epochs", done, failed)


async def plan_reset(
    router: RequestRouter,
    group: str,
    reset: OffsetReset,
    partitions: Collection[TopicPartition] | None,
    now_ms: int,
    deadline_ms: int,
    *,
    create: bool,
) -> dict[TopicPartition, int]:
    """Compute the offsets that a reset would commit. Raises ``LocalProtocolError`` for a group with
    members."""
    await _check_inactive(router, group, deadline_ms, create=create)
    committed = (await fetch(router, (group,), deadline_ms))[group]
    chosen = partitions
    if chosen is None:
        chosen = tuple(reset.offsets if isinstance(reset, ToPlan) else committed)
    if isinstance(reset, ToPlan):
        chosen = tuple(tp for tp in chosen if tp in reset.offsets)

    async def at(time_ms: int) -> dict[TopicPartition, int]:
        found = await list_offsets(router, dict.fromkeys(chosen, time_ms), deadline_ms)
        return {tp: each.offset for tp, each in found.items()}

    wanted_ms = time_wanted_ms(reset, now_ms)
    known = KnownOffsets(
        committed={tp: each.offset for tp, each in committed.items()},
        begin=await at(wire.EARLIEST),
        end=await at(wire.LATEST),
        by_time={} if wanted_ms is None else await at(wanted_ms),
    )
    return new_offsets(reset, chosen, known)


async def _check_inactive(
    router: RequestRouter, group: str, deadline_ms: int, *, create: bool
) -> None:
    try:
        found = (await describe_groups(router, (group,), deadline_ms))[group]
    except AdminFailed as err:
        cause = err.errors.get(group)
        if isinstance(cause, GroupIdNotFound):
            if create:
                return
            raise cause from None
        raise
    if found.state not in _INACTIVE:
        raise LocalProtocolError(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current "
            f"state is {found.state}."
        )
