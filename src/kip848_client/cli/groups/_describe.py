"""``kip848 groups describe``."""

from __future__ import annotations

import argparse
from typing import Any

from kip848_client.admin import (
    LATEST,
    Admin,
    GroupDescription,
    ListedOffset,
)
from kip848_client.cli._connecting import (
    add_connection,
    put_json,
    report,
    run_with_admin,
    said,
    said_of_each,
)
from kip848_client.cli._output import put, put_error, put_table
from kip848_client.cli.core._tables import Table
from kip848_client.cli.groups._selection import (
    add_groups,
    add_types,
    checked_groups,
    checked_types,
    chosen_groups,
    is_of_types,
)
from kip848_client.cli.groups.core import _views as views
from kip848_client.cli.groups.core import _worker_views as workers
from kip848_client.core.types import TopicPartition
from kip848_client.errors import AdminFailed

__all__ = ["configure", "described", "offsets_of", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    add_groups(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--offsets",
        action="store_true",
        help="offsets and lag, or the items of workers (the default)",
    )
    what.add_argument("--members", action="store_true", help="members")
    what.add_argument("--state", action="store_true", help="the state")
    parser.add_argument(
        "--verbose", action="store_true", help="more columns: epochs and assignments"
    )
    add_types(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one section per group. Exit code 1 if one does not exist."""
    checked_groups(arguments)
    arguments.types = checked_types(arguments)
    return run_with_admin(_describe, arguments)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    groups, failed = await described(
        admin, sorted(await chosen_groups(admin, arguments, arguments.types))
    )
    data: list[dict[str, Any]] = []
    for group in groups:
        if arguments.types and not is_of_types(group, arguments.types):
            continue
        kind = "Consumer" if group.connect is None else "Connect"
        if not group.members and not arguments.json:
            put_error("", f"{kind} group '{group.group_id}' has no active members.")
        if group.state in views.REBALANCING and not arguments.json:
            put_error("", f"Warning: {kind} group '{group.group_id}' is rebalancing.")
        try:
            table, section = await _section(admin, group, arguments)
        except AdminFailed as err:
            failed += said_of_each(err.errors)
            continue
        data.append({**views.group_data(group), **section})
        if not arguments.json:
            put("")
            put_table(table)
    if arguments.json:
        put_json(data)
    report(failed, arguments)
    return 1 if failed else 0


async def _section(
    admin: Admin, group: GroupDescription, arguments: argparse.Namespace
) -> tuple[Table, dict[str, Any]]:
    """The requested table, and the same as data. Workers have items instead of offsets."""
    verbose, types = arguments.verbose, arguments.type is not None
    if arguments.members:
        if group.connect is not None:
            table = workers.workers_table(group, verbose=verbose, types=types)
            return table, {**views.assignor_data(group), "members": workers.workers_data(group)}
        table = views.members_table(group, verbose=verbose, types=types)
        return table, {**views.assignor_data(group), "members": views.members_data(group)}
    if arguments.state:
        if group.connect is not None:
            table = workers.workers_state_table(group, verbose=verbose, types=types)
            return table, workers.workers_state_data(group)
        return views.state_table(group, verbose=verbose, types=types), views.state_data(group)
    if group.connect is not None:
        table = workers.items_table(group, types=types)
        return table, {"items": workers.items_data(group)}
    offsets = await offsets_of(admin, group)
    table = views.offsets_table(offsets, verbose=verbose, types=types)
    return table, {"offsets": views.offsets_data(offsets)}


async def described(admin: Admin, groups: list[str]) -> tuple[list[GroupDescription], list[str]]:
    """Return the existing groups, in this order, and the error messages of the others."""
    if not groups:
        return [], []
    try:
        return list((await admin.describe_groups(groups)).values()), []
    except AdminFailed as err:
        found = [err.done[each] for each in groups if each in err.done]
        return found, [said(err.errors[each]) for each in groups if each in err.errors]


async def offsets_of(admin: Admin, group: GroupDescription) -> views.GroupOffsets:
    """Return a group with its committed offsets, and the ends of its partitions."""
    committed = await admin.list_group_offsets(group.group_id)
    owned = {tp for member in group.members for tp in member.assignment}
    ends = await _ends(admin, owned | set(committed))
    return views.group_offsets(group, committed, ends)


async def _ends(admin: Admin, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the ends of partitions with a leader; a topic may be deleted while its offsets still
    exist."""
    if not partitions:
        return {}
    found: dict[TopicPartition, ListedOffset]
    try:
        found = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
    except AdminFailed as err:
        found = err.done
    return {tp: each.offset for tp, each in found.items()}
