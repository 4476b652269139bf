"""Topics and settings: describe, create, delete, change. Any broker is asked."""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.admin._failures import all_of
from kip848_client.admin._request_router import RequestRouter, Send
from kip848_client.admin.core import _topic_wire as wire
from kip848_client.admin.core._model import ConfigEntry, NewTopic, TopicDescription, TopicListing
from kip848_client.admin.core._retry_rounds import Refusal
from kip848_client.admin.core._topic_wire import GROUP, TOPIC
from kip848_client.core.types import format_topic_id
from kip848_client.core.wire.messages.topic_partitions import DescribeTopicPartitionsResponse
from kip848_client.error_codes import ErrorCode

__all__ = [
    "GROUP",
    "TOPIC",
    "alter_configs",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "describe_configs",
    "describe_topics",
    "list_topics",
]


async def list_topics(router: RequestRouter, deadline_ms: int) -> tuple[TopicListing, ...]:
    """List all topics."""
    answer = await router.any_broker(wire.topics_request(), deadline_ms)
    return tuple(
        TopicListing(each.name, format_topic_id(each.topic_id), each.is_internal)
        for each in sorted(answer.topics, key=lambda each: each.name or "")
        if each.name is not None
    )


async def describe_topics(
    router: RequestRouter, topics: tuple[str, ...], deadline_ms: int
) -> dict[str, TopicDescription]:
    """Describe some topics, page by page."""

    async def ask(send: Send, targets: tuple[str, ...]) -> Mapping[str, TopicDescription | Refusal]:
        pages: list[DescribeTopicPartitionsResponse] = []
        cursor = None
        while not pages or cursor is not None:
            page = await send(wire.page_request(targets, cursor))
            pages.append(page)
            cursor = page.next_cursor
            if cursor is not None:
                targets = tuple(each for each in targets if each >= cursor.topic_name)
        return wire.described_topics(pages)

    done, failed = await router.of_anyone(topics, ask, deadline_ms)
    found = all_of("describing topics", done, failed)
    return {name: found[name] for name in topics}


async def create_topics(
    router: RequestRouter, topics: tuple[NewTopic, ...], deadline_ms: int, *, validate_only: bool
) -> None:
    """Create topics."""
    by_name = {each.name: each for each in topics}
    # topics created by an earlier attempt whose answer was lost, unless it only validated
    done_before: dict[int, None] = {}
    if not validate_only:
        done_before[ErrorCode.TOPIC_ALREADY_EXISTS] = None
    done, failed = await router.of_the_cluster(
        tuple(by_name),
        lambda names: wire.creation_request(
            [by_name[name] for name in names],
            router.left_ms(deadline_ms),
            validate_only=validate_only,
        ),
        wire.created,
        deadline_ms,
        done_before,
    )
    all_of("creating topics", done, failed)


async def delete_topics(router: RequestRouter, topics: tuple[str, ...], deadline_ms: int) -> None:
    """Delete topics."""
    done, failed = await router.of_the_cluster(
        topics,
        lambda names: wire.deletion_request(names, router.left_ms(deadline_ms)),
        wire.deleted,
        deadline_ms,
        {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: None},
    )
    all_of("deleting topics", done, failed)


async def create_partitions(
    router: RequestRouter, counts: Mapping[str, int], deadline_ms: int, *, validate_only: bool
) -> None:
    """Add partitions. (After the answer to an earlier attempt was lost, INVALID_PARTITIONS may be
    caused by that attempt, or not: it stays an error.)"""
    done, failed = await router.of_the_cluster(
        tuple(counts),
        lambda names: wire.growth_request(
            {name: counts[name] for name in names},
            router.left_ms(deadline_ms),
            validate_only=validate_only,
        ),
        wire.grown,
        deadline_ms,
    )
    all_of("creating partitions", done, failed)


async def describe_configs(
    router: RequestRouter, kind: int, names: tuple[str, ...], deadline_ms: int
) -> dict[str, tuple[ConfigEntry, ...]]:
    """Describe settings of topics or groups."""

    async def ask(
        send: Send, targets: tuple[str, ...]
    ) -> Mapping[str, tuple[ConfigEntry, ...] | Refusal]:
        return wire.described_configs(await send(wire.describe_configs_request(kind, targets)))

    done, failed = await router.of_anyone(names, ask, deadline_ms)
    return all_of("describing settings", done, failed)


async def alter_configs(
    router: RequestRouter,
    kind: int,
    changes: Mapping[str, Mapping[str, str | None]],
    deadline_ms: int,
    *,
    validate_only: bool,
) -> None:
    """Change settings of topics or groups, one by one."""
    done, failed = await router.of_the_cluster(
        tuple(changes),
        lambda names: wire.alter_configs_request(
            kind, {name: changes[name] for name in names}, validate_only=validate_only
        ),
        wire.altered_configs,
        deadline_ms,
    )
    all_of("changing settings", done, failed)
