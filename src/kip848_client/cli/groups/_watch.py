"""``kip848 groups watch``: a group, continuously."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.admin import Admin, GroupDescription
from kip848_client.cli._connecting import add_connection, run_with_admin, said
from kip848_client.cli._live import Live, can_be_live, cut
from kip848_client.cli._output import flush, put
from kip848_client.cli.core._cells import folded
from kip848_client.cli.core._tables import Table
from kip848_client.cli.groups._describe import described, offsets_of
from kip848_client.cli.groups.core import _views as views
from kip848_client.cli.groups.core import _worker_views as workers
from kip848_client.core.visible import visible
from kip848_client.errors import ConfigError, Kip848Error

__all__ = ["configure", "run"]

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
    """Show the group until interrupted; with ``--json`` one line per look."""
    if not 0 < arguments.interval <= _INTERVAL_MAX_S:
        raise ConfigError(
            f"--interval {arguments.interval}: must be more than 0 seconds, and a day at most"
        )
    if arguments.count is not None and arguments.count < 1:
        raise ConfigError(f"--count {arguments.count}: must be a positive number")
    return run_with_admin(_watch, arguments)


async def _watch(admin: Admin, arguments: argparse.Namespace) -> int:
    if arguments.json:
        return await _follow(admin, arguments, _put_data)
    if not can_be_live(sys.stdout):
        return await _follow(admin, arguments, lambda look: put(*look.plain()))
    with Live(sys.stdout) as live, live.redrawn_on_resize():
        return await _follow(admin, arguments, lambda look: live.show(look.picture))


async def _follow(
    admin: Admin, arguments: argparse.Namespace, show: Callable[[_Look], None]
) -> int:
    looks, before = 0, None
    while True:
        look = await _look(admin, arguments.group, before)
        before = look.group or before
        show(look)
        flush()
        looks += 1
        if arguments.count is not None and looks >= arguments.count:
            return 1 if look.failed else 0
        await asyncio.sleep(arguments.interval)


def _put_data(look: _Look) -> None:
    put(json.dumps(look.data))


@dataclass(frozen=True, slots=True)
class _Look:
    """A snapshot of a group: data for ``--json``; tables, movements and errors for a terminal."""

    data: dict[str, Any]
    tables: tuple[Table, ...] = ()
    moving: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    group: GroupDescription | None = None

    def plain(self) -> list[str]:
        """The tables one after another, in the form of Kafka's tools."""
        if self.failed:
            return self._errors()
        state, members, offsets = (table.plain() for table in self.tables)
        return [*state, "", *members, *self.moving, "", *offsets, ""]

    def picture(self, width: int, height: int | None) -> list[str]:
        """The same for a terminal: the group's name once, fitted to the size."""
        if self.failed:
            return [line for each in self._errors() for line in folded(each, width)]
        state, *others = self.tables
        members, offsets = (table.fitted(width, is_titled=False) for table in others)
        moving = [line for each in self.moving for line in folded(each, width)]
        lines = [*state.fitted(width), "", *members, *moving, "", *offsets]
        return lines if height is None else cut(lines, height)

    def _errors(self) -> list[str]:
        return [f"Error: {each}" for each in self.failed]


async def _look(admin: Admin, name: str, before: GroupDescription | None) -> _Look:
    """Take a snapshot. Errors are part of it, so that watching continues while a broker is
    unavailable."""
    try:
        groups, failed = await described(admin, [name])
        offsets = [await offsets_of(admin, each) for each in groups if each.connect is None]
    except ConfigError:
        raise
    except Kip848Error as err:
        groups, offsets, failed = [], [], [said(err)]
    if failed:
        return _Look({"errors": failed}, failed=tuple(map(visible, failed)))
    (group,) = groups
    moving = views.moving(group, before)
    head = {**views.group_data(group), "moving": moving}
    if group.connect is not None:
        data = {
            **head,
            **workers.workers_state_data(group),
            "members": workers.workers_data(group),
            "items": workers.items_data(group),
        }
        tables = (
            workers.workers_state_table(group, verbose=True),
            workers.workers_table(group, verbose=True),
            workers.items_table(group),
        )
    else:
        (found,) = offsets
        data = {
            **head,
            **views.state_data(group),
            "members": views.members_data(group),
            "offsets": views.offsets_data(found),
        }
        tables = (
            views.state_table(group, verbose=True),
            views.members_table(group, verbose=True),
            views.offsets_table(found, verbose=False),
        )
    return _Look(data, tables, tuple(map(visible, moving)), group=group)
