"""``kip848 groups describe``."""

from __future__ import annotations

import argparse
from typing import Any

from kip848_client._types import TopicPartition
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
from kip848_client.cli.groups import _views as views
from kip848_client.cli.groups._selection import add_groups, checked_groups, chosen_groups
from kip848_client.errors import AdminFailed

__all__ = ["configure", "described", "offsets_of", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    add_groups(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--offsets", action="store_true", help="offsets and lag (the default)")
    what.add_argument("--members", action="store_true", help="members")
    what.add_argument("--state", action="store_true", help="the state")
    parser.add_argument(
        "--verbose", action="store_true", help="more columns: epochs and assignments"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a section a group. Exit code 1 where one does not exist."""
    checked_groups(arguments)
    return run_with_admin(_describe, arguments)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    groups, failed = await described(admin, sorted(await chosen_groups(admin, arguments)))
    data: list[dict[str, Any]] = []
    for group in groups:
        if not group.members and not arguments.json:
            put_error("", f"Consumer group '{group.group_id}' has no active members.")
        if group.state in views.REBALANCING and not arguments.json:
            put_error("", f"Warning: Consumer group '{group.group_id}' is rebalancing.")
        head = views.group_data(group)
        if arguments.members:
            table = views.members_table(group, verbose=arguments.verbose)
            data.append({**head, "members": views.members_data(group)})
        elif arguments.state:
            table = views.state_table(group, verbose=arguments.verbose)
            data.append({**head, **views.state_data(group)})
        else:
            try:
                offsets = await offsets_of(admin, group)
            except AdminFailed as err:
                failed += said_of_each(err.errors)
                continue
            table = views.offsets_table(offsets, verbose=arguments.verbose)
            data.append({**head, "offsets": views.offsets_data(offsets)})
        if not arguments.json:
            put("")
            put_table(table)
    if arguments.json:
        put_json(data)
    report(failed, arguments)
    return 1 if failed else 0


async def described(admin: Admin, groups: list[str]) -> tuple[list[GroupDescription], list[str]]:
    """Those that are there, in this order, and what is to be said of the others."""
    if not groups:
        return [], []
    try:
        return list((await admin.describe_groups(groups)).values()), []
    except AdminFailed as err:
        found = [err.done[each] for each in groups if each in err.done]
        return found, [said(err.errors[each]) for each in groups if each in err.errors]


async def offsets_of(admin: Admin, group: GroupDescription) -> views.GroupOffsets:
    """A group with what it has committed, and the ends of its partitions."""
    committed = await admin.list_group_offsets(group.group_id)
    owned = {tp for member in group.members for tp in member.assignment}
    ends = await _ends(admin, owned | set(committed))
    return views.group_offsets(group, committed, ends)


async def _ends(admin: Admin, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Of those that have a leader; a topic may be gone, and its offsets still there."""
    if not partitions:
        return {}
    found: dict[TopicPartition, ListedOffset]
    try:
        found = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
    except AdminFailed as err:
        found = err.done
    return {tp: each.offset for tp, each in found.items()}
