"""``kip848 groups watch``: a group, again and again."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any, Final

from kip848_client.admin import Admin
from kip848_client.cli._connecting import add_connection, run_with_admin, said
from kip848_client.cli._output import flush, put
from kip848_client.cli.groups import _views as views
from kip848_client.cli.groups._describe import described, offsets_of
from kip848_client.errors import ConfigError, Kip848Error

__all__ = ["configure", "run"]

_CLEAR: Final = "\x1b[H\x1b[J"
"""To the upper left corner, and away with what is there."""
_INTERVAL_MAX_S: Final = 86_400


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument("group", metavar="GROUP", help="the group")
    parser.add_argument(
        "--interval", type=float, default=1.0, metavar="S", help="seconds between (%(default)s)"
    )
    parser.add_argument(
        "--count", type=int, default=None, metavar="N", help="end after N looks (never)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Show it until interrupted; a line of JSON a look with ``--json``."""
    if not 0 < arguments.interval <= _INTERVAL_MAX_S:
        raise ConfigError(
            f"--interval {arguments.interval}: must be more than 0 seconds, and a day at most"
        )
    if arguments.count is not None and arguments.count < 1:
        raise ConfigError(f"--count {arguments.count}: must be a positive number")
    return run_with_admin(_watch, arguments)


async def _watch(admin: Admin, arguments: argparse.Namespace) -> int:
    clear = _CLEAR if sys.stdout.isatty() else ""
    looks = 0
    while True:
        data, text, failed = await _look(admin, arguments.group)
        put(json.dumps(data) + "\n" if arguments.json else clear + text)
        flush()
        looks += 1
        if arguments.count is not None and looks >= arguments.count:
            return 1 if failed else 0
        await asyncio.sleep(arguments.interval)


async def _look(admin: Admin, name: str) -> tuple[dict[str, Any], str, list[str]]:
    """The group as data, as a text, and what failed: a broker that is away for a while is no reason
    to look no more."""
    try:
        groups, failed = await described(admin, [name])
        offsets = [await offsets_of(admin, each) for each in groups]
    except ConfigError:
        raise
    except Kip848Error as err:
        offsets, failed = [], [said(err)]
    if failed:
        return {"errors": failed}, "".join(f"Error: {each}\n" for each in failed), failed
    (found,) = offsets
    group = found.group
    data = {
        **views.group_data(group),
        **views.state_data(group),
        "members": views.members_data(group),
        "moving": views.moving(group),
        "offsets": views.offsets_data(found),
    }
    return data, _picture(found), []


def _picture(found: views.GroupOffsets) -> str:
    """State, members, what is moving, and lag."""
    group = found.group
    moving = "".join(f"{line}\n" for line in views.moving(group))
    return (
        f"{views.state_table(group, verbose=True)}\n"
        f"{views.members_table(group, verbose=True)}{moving}\n"
        f"{views.offsets_table(found, verbose=False)}\n"
    )
