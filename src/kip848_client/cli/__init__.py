"""The command ``kip848``: one module per subcommand, imported only when it is used.

To add a subcommand, write ``cli/NAME.py`` with ``configure(parser)``, which declares its arguments,
and ``run(arguments) -> int``, which runs it and returns the exit code, and name it in ``COMMANDS``.
Exit codes: 0 success, 1 failure, 2 an invalid command line or setting.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from kip848_client._version import __version__
from kip848_client.cli._output import Unwritable, flush, give_up, prepare, put, put_error
from kip848_client.core.visible import visible
from kip848_client.errors import ConfigError

__all__ = ["COMMANDS", "main", "parser_for"]

COMMANDS: Final[dict[str, str]] = {
    "connect": "watch workers of a Connect group: one joins, one is killed, one bounces",
    "demo": "watch a consumer group at work: members join, leave, crash and come back",
    "groups": "list, describe, reset, delete and watch consumer groups",
    "mock": "run a Kafka broker for tests, with a KIP-848 group coordinator",
    "pipeline": "read topics with Spark into Parquet, tables or a topic",
    "report": "show what happened to the members of groups: a page with pictures",
    "simulate": "play consumer groups in virtual time on a bad network, one world a seed",
    "topics": "list, describe, create, delete and alter topics",
}
"""Name of the subcommand, which is also its module in this package, to its one-line help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code. ``arguments`` are those of the process by
    default."""
    try:
        prepare()
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError as err:  # from a command that prints directly
        return give_up(err)
    except Unwritable as err:
        return give_up(err.__cause__)


class _Parser(argparse.ArgumentParser):
    """Prints each error on one line, whatever the arguments contain."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def parser_for(given: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser for these arguments. Only the named command is imported."""
    parser = _Parser(
        prog="kip848", description="Tools around Kafka's KIP-848 consumer group protocol."
    )
    parser.add_argument("--version", action="store_true", help="print the version, and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in given[:1]:
            importlib.import_module(f"{__name__}.{name}").configure(command)
    return parser


def _print_version() -> int:
    from kip848_client.core.produce._partitioner import HASHES
    from kip848_client.records import COMPILED

    compiled = {"records": COMPILED, "key hash": True in HASHES}
    there = [name for name, is_there in compiled.items() if is_there]
    missing = [name for name, is_there in compiled.items() if not is_there]
    put(f"kip848-client {__version__}")
    put(f"compiled extensions: {', '.join(there) or 'none'}")
    if missing:
        put(f"missing: {', '.join(missing)}; everything works without them, but slower")
    return 0


def _run(given: list[str]) -> int:
    if given == ["--version"]:
        return _print_version()
    parsed = parser_for(given).parse_args(given)
    try:
        code: int = importlib.import_module(f"{__name__}.{parsed.command}").run(parsed)
    except ConfigError as err:
        put_error(f"kip848 {parsed.command}: {err}")
        return 2
    return code
