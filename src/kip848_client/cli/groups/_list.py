"""``kip848 groups list``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

from kip848_client.admin import Admin, GroupListing
from kip848_client.cli._connecting import (
    add_connection,
    put_json,
    report,
    run_with_admin,
    said_of_each,
)
from kip848_client.cli._output import put, put_table
from kip848_client.cli.groups._selection import (
    ALL,
    add_types,
    asked_types,
    checked_list,
    checked_types,
    is_listed,
)
from kip848_client.cli.groups.core._views import listing_data, listing_names, listing_table
from kip848_client.errors import AdminFailed

__all__ = ["configure", "run"]

_STATES: Final = (
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument(
        "--state",
        nargs="?",
        const=ALL,
        metavar="STATES",
        help=f"show states; or only groups in some of them, separated by commas: "
        f"{', '.join(_STATES)}",
    )
    add_types(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the groups by name. Exit code 1 if a broker did not return its groups."""
    arguments.states = checked_list(arguments.state, _STATES, "state")
    arguments.types = checked_types(arguments)
    return run_with_admin(_list, arguments)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    failed: list[str] = []
    found: Iterable[GroupListing]
    try:
        found = await admin.list_groups(states=arguments.states, types=asked_types(arguments.types))
    except AdminFailed as err:  # some brokers failed
        told = {each.group_id: each for of_one in err.done.values() for each in of_one}
        found = [told[name] for name in sorted(told)]
        failed = said_of_each(err.errors)
    groups = [each for each in found if is_listed(each, arguments.types)]
    if arguments.json:
        put_json(listing_data(groups))
    elif arguments.type is None and arguments.state is None:
        put(*listing_names(groups))
    else:
        shown = {"types": arguments.type is not None, "states": arguments.state is not None}
        put_table(listing_table(groups, **shown))
    report(failed, arguments)
    return 1 if failed else 0
