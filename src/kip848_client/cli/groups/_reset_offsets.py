"""``kip848 groups reset-offsets``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kip848_client.admin import (
    Admin,
    ByDuration,
    OffsetReset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    parse_datetime_ms,
    parse_plan,
    written_plan,
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
from kip848_client.cli.groups._selection import (
    add_groups,
    add_topics,
    checked_groups,
    chosen_groups,
    chosen_partitions,
)
from kip848_client.cli.groups.core._views import Move, Moves, new_offsets_data, new_offsets_table
from kip848_client.config import parse_duration_ms
from kip848_client.core.types import TopicPartition
from kip848_client.core.visible import visible
from kip848_client.errors import AdminFailed, ConfigError, GroupIdNotFound, LocalProtocolError

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    add_groups(parser)
    add_topics(parser)
    parser.add_argument(
        "--all-topics", action="store_true", help="what the group has committed offsets for"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="the begin of the log")
    where.add_argument("--to-latest", action="store_true", help="the end of the log")
    where.add_argument("--to-current", action="store_true", help="what is committed now")
    where.add_argument("--to-offset", type=int, metavar="OFFSET", help="one offset")
    where.add_argument(
        "--shift-by", type=int, metavar="N", help="N records on, or back if N is negative"
    )
    where.add_argument(
        "--by-duration", metavar="PnDTnHnMnS", help="the first record of the last ..."
    )
    where.add_argument(
        "--to-datetime",
        metavar="YYYY-MM-DDTHH:mm:SS.sss",
        help="the first record from then on; UTC, unless a zone follows",
    )
    where.add_argument(
        "--from-file", metavar="FILE", help="lines of topic,partition,offset, as --export writes"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only show (the default)")
    mode.add_argument("--execute", action="store_true", help="do it")
    parser.add_argument("--export", action="store_true", help="print lines for --from-file")
    parser.add_argument(
        "--create", action="store_true", help="let a group that does not exist begin to"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the new offsets. Exit code 1 if a group could not be reset."""
    checked_groups(arguments)
    scopes = bool(arguments.topic) + arguments.all_topics
    if arguments.from_file is None and scopes != 1:
        raise ConfigError("One of the reset scopes should be defined: [all-topics], [topic]")
    if arguments.from_file is not None and scopes:
        raise ConfigError("--from-file says itself which topics it is about")
    arguments.to = _reset(arguments)
    if not arguments.execute and not arguments.dry_run:
        put_error("WARN: nothing is changed without --execute")
    return run_with_admin(_reset_offsets, arguments)


def _reset(arguments: argparse.Namespace) -> OffsetReset:
    """Return the reset for the options; for ``--from-file`` an empty plan, which depends on the
    groups."""
    if arguments.to_earliest:
        return ToEarliest()
    if arguments.to_latest:
        return ToLatest()
    if arguments.to_current:
        return ToCurrent()
    if arguments.to_offset is not None:
        if arguments.to_offset < 0:
            raise ConfigError(f"--to-offset {arguments.to_offset}: must not be negative")
        return ToOffset(arguments.to_offset)
    if arguments.shift_by is not None:
        return ShiftBy(arguments.shift_by)
    if arguments.by_duration is not None:
        try:
            return ByDuration(parse_duration_ms(arguments.by_duration))
        except ValueError as err:
            raise ConfigError(f"--by-duration: {err}") from err
    if arguments.to_datetime is not None:
        return ToTime(parse_datetime_ms(arguments.to_datetime))
    return ToPlan({})


async def _reset_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    groups = await chosen_groups(admin, arguments)
    plans = _plans(arguments.from_file, groups)
    partitions = await chosen_partitions(admin, arguments.topic) if arguments.topic else None
    moves: dict[str, dict[TopicPartition, Move]] = {}
    failed: list[str] = []
    for group in groups:
        moves[group] = {}
        to = arguments.to if plans is None else ToPlan(plans.get(group, {}))
        try:
            before = await _committed(admin, group)
            after = await admin.reset_group_offsets(
                group,
                to,
                partitions,
                dry_run=not arguments.execute,
                create=arguments.create,
            )
            moves[group] = {tp: Move(before.get(tp), offset) for tp, offset in after.items()}
        except GroupIdNotFound as err:
            failed.append(f"{said(err)} (--create lets it begin to exist)")
        except AdminFailed as err:
            failed += said_of_each(err.errors)
        except LocalProtocolError as err:
            failed.append(said(err))
    _show(moves, failed, arguments)
    return 1 if failed else 0


async def _committed(admin: Admin, group: str) -> dict[TopicPartition, int]:
    """The committed offsets before the reset; empty for a group that does not exist yet."""
    try:
        found = await admin.list_group_offsets(group)
    except GroupIdNotFound:
        return {}
    return {tp: each.offset for tp, each in found.items()}


def _plans(file: str | None, groups: list[str]) -> dict[str, dict[TopicPartition, int]] | None:
    if file is None:
        return None
    try:
        return parse_plan(Path(file).read_text(encoding="utf-8-sig"), groups)
    except (OSError, ValueError) as err:  # a ``ConfigError`` is a ``ValueError``, too
        raise ConfigError(f"--from-file {file}: {err}") from err


def _show(moves: Moves, failed: list[str], arguments: argparse.Namespace) -> None:
    report(failed, arguments)
    if arguments.json:
        put_json(new_offsets_data(moves))
    elif arguments.export:
        plan = {
            visible(group): {tp: move.new for tp, move in of_group.items()}
            for group, of_group in moves.items()
        }
        put(*written_plan(plan).split("\n"))
    else:
        put("")
        put_table(new_offsets_table(moves))
