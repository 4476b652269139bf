"""``kip848 topics alter``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._configs import add_changes, changes_of, unknown_settings
from kip848_client.cli._connecting import add_connection, put_json, report, run_with_admin
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="its name")
    parser.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="the new number; it cannot be reduced",
    )
    add_changes(parser)


def run(arguments: argparse.Namespace) -> int:
    """Change the topic, without output."""
    arguments.changes = changes_of(arguments)
    if arguments.partitions is None and not arguments.changes:
        raise ConfigError("give --partitions, --add-config or --delete-config")
    return run_with_admin(_alter, arguments)


async def _alter(admin: Admin, arguments: argparse.Namespace) -> int:
    if arguments.delete_config:
        known = (await admin.describe_topic_configs([arguments.topic]))[arguments.topic]
        unknown = unknown_settings(arguments, known)
        if unknown is not None:
            report([unknown], arguments)
            return 1
    if arguments.partitions is not None:
        await admin.create_partitions({arguments.topic: arguments.partitions})
    if arguments.changes:
        await admin.alter_topic_configs({arguments.topic: arguments.changes})
    if arguments.json:
        put_json({"topic": arguments.topic, "altered": True})
    return 0
