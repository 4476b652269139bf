"""``kip848 groups watch``: a group, again and again."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Final

from kip848_client.admin import Admin, GroupDescription
from kip848_client.cli._connecting import add_connection, put, run_with_admin
from kip848_client.cli.groups import _views as views
from kip848_client.cli.groups._describe import described, offsets_of
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]

_CLEAR: Final = "\x1b[H\x1b[J"
"""To the upper left corner, and away with what is there."""


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
    if arguments.interval <= 0:
        raise ConfigError(f"--interval {arguments.interval}: must be more than 0 seconds")
    return run_with_admin(_watch, arguments)


async def _watch(admin: Admin, arguments: argparse.Namespace) -> int:
    clear = _CLEAR if sys.stdout.isatty() else ""
    looks = 0
    while True:
        groups, failed = await described(admin, [arguments.group])
        if arguments.json:
            put(json.dumps(await _data(admin, groups, failed)) + "\n")
        else:
            put(clear + await _picture(admin, groups, failed))
        sys.stdout.flush()
        looks += 1
        if arguments.count is not None and looks >= arguments.count:
            return 1 if failed else 0
        await asyncio.sleep(arguments.interval)


async def _picture(admin: Admin, groups: list[GroupDescription], failed: list[str]) -> str:
    """State, members that are not where they are to be, and lag."""
    text = "".join(f"Error: {each}\n" for each in failed)
    for group in groups:
        offsets = await offsets_of(admin, group)
        text += views.state_table(group, verbose=True)
        text += f"\n{views.members_table(group, verbose=True)}"
        text += "".join(f"{line}\n" for line in views.moving(group))
        text += f"\n{views.offsets_table(offsets, verbose=False)}\n"
    return text


async def _data(
    admin: Admin, groups: list[GroupDescription], failed: list[str]
) -> dict[str, object]:
    if not groups:
        return {"errors": failed}
    group = groups[0]
    return {
        **views.group_data(group),
        **views.state_data(group),
        "members": views.members_data(group),
        "moving": views.moving(group),
        "offsets": views.offsets_data(await offsets_of(admin, group)),
    }
