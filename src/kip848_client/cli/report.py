"""``kip848 report``: the history of group members, as a page and as pictures."""

from __future__ import annotations

import argparse

from kip848_client.cli._output import put, put_error
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]

_SLA_MS = 1_000
_TOLD = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "events",
        nargs="+",
        metavar="EVENTS",
        help="files of events: lines of JSON (docs/reference/history.md)",
    )
    parser.add_argument(
        "--output", default="report.html", metavar="FILE", help="the page (%(default)s)"
    )
    parser.add_argument("--png", metavar="FOLDER", help="write the pictures here, too, as PNG")
    parser.add_argument(
        "--heartbeat-sla-ms",
        type=int,
        default=_SLA_MS,
        metavar="MS",
        help="how soon heartbeats are to be answered (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page and pictures; exit code 0, even if the groups have problems. Raises
    ``ConfigError`` for files that cannot be read or written, or have no events."""
    from kip848_client.history.core import tables_of
    from kip848_client.history.recording import read_files
    from kip848_client.history.report import findings_of, views_of, write_page, write_pictures

    if arguments.heartbeat_sla_ms < 0:
        raise ConfigError(f"--heartbeat-sla-ms {arguments.heartbeat_sla_ms}: less than no time")
    record = read_files(arguments.events)
    for path, line, why in record.complaints[:_TOLD]:
        put_error(f"kip848 report: {path}, line {line} is not an event: {why}")
    if record.bad > _TOLD:
        put_error(f"kip848 report: and {record.bad - _TOLD} more lines")
    tables = tables_of(record.events, arguments.heartbeat_sla_ms)
    write_page(arguments.output, tables, record)
    pictures = write_pictures(arguments.png, tables) if arguments.png is not None else []
    for view in views_of(tables):
        put(f"group {view.group_id}")
        for found in findings_of(view):
            put(f"  {' ' if found.good else '!'} {found.text}")
    put(arguments.output)
    for picture in pictures:
        put(str(picture))
    return 0
