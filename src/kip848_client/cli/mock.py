"""``kip848 mock``: a broker on a port, or several, until they are interrupted."""

from __future__ import annotations

import argparse
import logging
import re
from pathlib import Path
from typing import Final

from kip848_client.cli import _mock_security
from kip848_client.cli._output import VisibleFormatter
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]

_COUNT: Final = re.compile("[0-9]{1,9}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on; 0 picks a free one (%(default)s)"
    )
    parser.add_argument(
        "--brokers",
        type=int,
        default=1,
        help="number of brokers, each on its own port: --port and the ports after it, or free ones "
        "(%(default)s)",
    )
    parser.add_argument(
        "--profile", default=None, help="Kafka release line to emulate: 4.0 to 4.4 (the newest)"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="NAME:PARTITIONS",
        help="topic to create at the start; repeatable",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="broker setting by Kafka's name, e.g. group.consumer.assignment.interval.ms=0; "
        "repeatable",
    )
    parser.add_argument(
        "--data-dir",
        default=None,
        metavar="FOLDER",
        help="keep topics, settings, records and groups in this folder, across restarts",
    )
    parser.add_argument(
        "--fsync",
        choices=("always", "second", "never"),
        default="always",
        help="with --data-dir, when to sync the disk: before every response, once a second, or "
        "never (left to the operating system); a killed process loses nothing (%(default)s)",
    )
    _configure_tests(parser)
    _mock_security.configure(parser)


def _configure_tests(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for tests, which Kafka does not have."""
    parser.add_argument(
        "--faults",
        default=None,
        metavar="FILE",
        help="faults to inject, as JSON (docs/reference/faults.md)",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        default=None,
        metavar="PORT",
        help="serve the metrics of the group coordinators at http://HOST:PORT/metrics, for "
        "Prometheus; 0 picks a free port",
    )
    parser.add_argument(
        "--no-draft-protocols",
        dest="draft_protocols",
        action="store_false",
        help="disable the protocols that no Kafka release has: assignments computed by "
        "members, and Connect groups",
    )

    parser.add_argument(
        "--events",
        default=None,
        metavar="FILE",
        help="append the events of the group coordinators to this file, as lines of JSON "
        "(docs/reference/history.md), for kip848 report",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM. Raises ``ConfigError`` for invalid arguments."""
    try:
        from mock_coordinator.command import serve
        from mock_coordinator.security import SecurityOptions
    except ImportError as err:
        raise ConfigError(f"the broker is not installed with this package: {err}") from err
    topics: dict[str, int] = {}
    for name, count in map(_topic, arguments.topic):
        if name in topics:
            raise ConfigError(f"--topic {name} is given twice")
        topics[name] = count
    if arguments.data_dir == "":
        raise ConfigError("--data-dir: the name of the folder is empty")
    security = _mock_security.security_data(arguments)
    shown = logging.StreamHandler()
    shown.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[shown], level=logging.INFO)
    return serve(
        topics,
        faults=_faults(arguments.faults),
        metrics_port=arguments.metrics_port,
        profile=arguments.profile,
        config=dict(_setting(text) for text in arguments.config),
        host=arguments.host,
        port=arguments.port,
        brokers=arguments.brokers,
        security=None if security is None else SecurityOptions.from_data(security),
        data_dir=arguments.data_dir,
        fsync=arguments.fsync,
        events=arguments.events,
        draft_protocols=arguments.draft_protocols,
    )


def _faults(file: str | None) -> str:
    if file is None:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise ConfigError(f"--faults {file}: {err}") from err


def _topic(text: str) -> tuple[str, int]:
    name, separator, count = text.rpartition(":")
    if not separator or not _COUNT.fullmatch(count):
        raise ConfigError(f"--topic {text!r}: expected NAME:PARTITIONS, e.g. orders:3")
    return name, int(count)


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--config {text!r}: expected KEY=VALUE")
    return name.strip(), value.strip()
