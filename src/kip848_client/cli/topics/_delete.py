"""``kip848 topics delete``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._connecting import add_connection, put_json, run_with_admin

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument(
        "--topic",
        action="append",
        required=True,
        metavar="TOPIC",
        help="a topic; may be given more than once",
    )


def run(arguments: argparse.Namespace) -> int:
    """Delete them, and say nothing."""
    return run_with_admin(_delete, arguments)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    await admin.delete_topics(arguments.topic)
    if arguments.json:
        put_json({"deleted": arguments.topic})
    return 0
