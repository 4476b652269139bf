"""``kip848 topics create``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin, NewTopic
from kip848_client.cli._configs import parse_settings
from kip848_client.cli._connecting import add_connection, put_json, run_with_admin
from kip848_client.cli._output import put
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import AdminFailed, BrokerError

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="its name")
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="how many partitions (the brokers' default)"
    )
    parser.add_argument(
        "--replication-factor", type=int, metavar="N", help="how many replicas (their default)"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting; may be given more than once",
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="a topic that is there already is fine"
    )


def run(arguments: argparse.Namespace) -> int:
    """Create the topic."""
    settings = parse_settings(arguments.config, "--config")
    arguments.new = NewTopic(
        arguments.topic,
        arguments.partitions,
        arguments.replication_factor,
        tuple(settings.items()),
    )
    return run_with_admin(_create, arguments)


async def _create(admin: Admin, arguments: argparse.Namespace) -> int:
    name = arguments.new.name
    is_new = True
    try:
        await admin.create_topics([arguments.new])
    except AdminFailed as err:
        cause = err.errors.get(name)
        exists = isinstance(cause, BrokerError) and cause.code == ErrorCode.TOPIC_ALREADY_EXISTS
        if not exists or not arguments.if_not_exists:
            raise
        is_new = False
    if arguments.json:
        put_json({"topic": name, "created": is_new})
    elif is_new:
        put(f"Created topic {name}.")
    return 0
