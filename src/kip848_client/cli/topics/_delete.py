"""``kip848 topics delete``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._connecting import (
    add_connection,
    put_json,
    report,
    run_with_admin,
    said,
    said_of_each,
)
from kip848_client.errors import AdminFailed, Kip848Error

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
    """Delete topics, printing only those that remain. Exit code 1 if any does."""
    return run_with_admin(_delete, arguments)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    topics = list(dict.fromkeys(arguments.topic))
    failed: dict[str, Kip848Error] = {}
    try:
        await admin.delete_topics(topics)
    except AdminFailed as err:
        failed = err.errors
    if arguments.json:
        errors = [{"topic": topic, "error": said(why)} for topic, why in failed.items()]
        gone = [each for each in topics if each not in failed]
        put_json({"deleted": gone, "failed": errors})
    else:
        report(said_of_each(failed), arguments)
    return 1 if failed else 0
