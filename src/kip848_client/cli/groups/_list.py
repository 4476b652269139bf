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
from kip848_client.cli.groups._selection import is_for_consumers
from kip848_client.cli.groups._views import listing_data, listing_names, listing_table
from kip848_client.errors import AdminFailed, ConfigError

__all__ = ["configure", "run"]

_ALL: Final = ""
_STATES: Final = (
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
)
_TYPES: Final = ("Consumer", "Classic")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument(
        "--state",
        nargs="?",
        const=_ALL,
        metavar="STATES",
        help=f"show states; or only groups in some of them, separated by commas: "
        f"{', '.join(_STATES)}",
    )
    parser.add_argument(
        "--type",
        nargs="?",
        const=_ALL,
        metavar="TYPES",
        help=f"show types; or only groups of some, separated by commas: {', '.join(_TYPES)}",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the groups by name. Exit code 1 where a broker did not tell of its own."""
    arguments.states = _chosen(arguments.state, _STATES, "state")
    arguments.types = _chosen(arguments.type, _TYPES, "type")
    return run_with_admin(_list, arguments)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    failed: list[str] = []
    found: Iterable[GroupListing]
    try:
        found = await admin.list_groups(states=arguments.states, types=arguments.types or _TYPES)
    except AdminFailed as err:  # of some brokers
        told = {each.group_id: each for of_one in err.done.values() for each in of_one}
        found = [told[name] for name in sorted(told)]
        failed = said_of_each(err.errors)
    groups = [each for each in found if is_for_consumers(each)]
    if arguments.json:
        put_json(listing_data(groups))
    elif arguments.type is None and arguments.state is None:
        put(*listing_names(groups))
    else:
        shown = {"types": arguments.type is not None, "states": arguments.state is not None}
        put_table(listing_table(groups, **shown))
    report(failed, arguments)
    return 1 if failed else 0


def _chosen(given: str | None, known: tuple[str, ...], what: str) -> list[str]:
    words = [each.strip().lower() for each in (given or "").split(",") if each.strip()]
    if not set(words) <= {each.lower() for each in known}:
        raise ConfigError(f"Invalid {what}s list '{given}'. Valid {what}s are: {', '.join(known)}")
    return words
