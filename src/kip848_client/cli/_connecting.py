"""``--bootstrap-server`` and ``--command-config``, as in Kafka's tools; running a command with an
``Admin``; printing errors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from kip848_client.admin import Admin
from kip848_client.cli._command_config import settings_from
from kip848_client.cli._output import put, put_error
from kip848_client.cli._running import run_to_end
from kip848_client.error_codes import default_message
from kip848_client.errors import AdminFailed, BrokerError, ConfigError, Kip848Error

__all__ = [
    "add_connection",
    "error",
    "put_json",
    "report",
    "run_with_admin",
    "said",
    "said_of_each",
]

_TIMEOUT_MS: Final = 30_000
_ATTEMPTS: Final = 3
"""Number of brokers that may fail to answer before the deadline."""

Work = Callable[[Admin, argparse.Namespace], Awaitable[int]]


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command that uses brokers."""
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT",
        help="the brokers to ask first, separated by commas",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="Kafka properties: security.protocol, sasl.*, ssl.*, client.id, timeouts",
    )
    parser.add_argument(
        "--timeout",
        type=int,
        default=_TIMEOUT_MS,
        metavar="MS",
        help="how long to go on trying (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run_with_admin(work: Work, arguments: argparse.Namespace) -> int:
    """Connect, run the command, disconnect; returns the exit code. Raises ``ConfigError``."""
    if arguments.timeout < 1:
        raise ConfigError(f"--timeout {arguments.timeout}: must be a positive number of ms")
    settings: dict[str, Any] = {
        "client_id": "kip848-cli",
        "request_timeout_ms": max(1, min(arguments.timeout // _ATTEMPTS, _TIMEOUT_MS)),
        **settings_from(arguments.command_config),
        "bootstrap_servers": arguments.bootstrap_server,
        "default_api_timeout_ms": arguments.timeout,
    }

    async def run() -> int:
        async with Admin(**settings) as admin:
            return await work(admin, arguments)

    try:
        return run_to_end(run())
    except ConfigError:
        raise
    except AdminFailed as err:
        report(said_of_each(err.errors), arguments)
    except Kip848Error as err:
        report([said(err)], arguments)
    return 1


def report(texts: Iterable[str], arguments: argparse.Namespace) -> None:
    """Print errors: on standard output as Kafka's tools do, with ``--json`` on standard error."""
    for text in texts:
        if arguments.json:
            put_error(f"Error: {text}")
        else:
            error(text)


def said(err: BaseException) -> str:
    """Return the broker's message, or Kafka's text for its error code, with a hint if there is
    one."""
    if not isinstance(err, BrokerError):
        return str(err)
    words = err.broker_message or default_message(err.code)
    if not words:
        return str(err)
    return f"{words} ({err.hint})" if err.hint else words


def said_of_each(errors: Mapping[Any, Kip848Error]) -> list[str]:
    """Return the error messages of groups, topics, partitions or brokers. Kafka's texts for error
    codes do not name them."""
    return [
        f"{_named(target)}: {said(err)}" if _names_nothing(err) else said(err)
        for target, err in errors.items()
    ]


def _names_nothing(err: Kip848Error) -> bool:
    if not isinstance(err, BrokerError):
        return False
    return err.broker_message in (None, "", default_message(err.code))


def _named(target: Any) -> str:
    if isinstance(target, tuple):
        return f"{target[0]}-{target[1]}"
    return f"broker {target}" if isinstance(target, int) else str(target)


def error(text: str) -> None:
    """Print an error on standard output, as Kafka's tools do."""
    put("", f"Error: {text}")


def put_json(data: object) -> None:
    """Print data."""
    put(*json.dumps(data, indent=2).split("\n"))
