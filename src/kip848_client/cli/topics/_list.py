"""``kip848 topics list``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._connecting import add_connection, put_json, run_with_admin
from kip848_client.cli._output import put

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument(
        "--exclude-internal", action="store_true", help="without __consumer_offsets and its like"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the topics by name."""
    return run_with_admin(_list, arguments)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    found = await admin.list_topics()
    topics = [each for each in found if not (arguments.exclude_internal and each.is_internal)]
    if arguments.json:
        put_json(
            [
                {"topic": each.name, "topic_id": each.topic_id, "is_internal": each.is_internal}
                for each in topics
            ]
        )
    else:
        put(*(each.name for each in topics))
    return 0
