"""``kip848 groups delete-offsets``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._connecting import add_connection, error, put_json, run_with_admin, said
from kip848_client.cli._output import put, put_table
from kip848_client.cli.core._tables import Column, Fit, Table
from kip848_client.cli.groups._selection import add_topics, chosen_partitions
from kip848_client.core.types import TopicPartition
from kip848_client.errors import AdminFailed, ConfigError, Kip848Error

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument("--group", required=True, metavar="GROUP", help="the group")
    add_topics(parser)


def run(arguments: argparse.Namespace) -> int:
    """Delete the committed offsets of these partitions. Exit code 1 if any remains."""
    if not arguments.topic:
        raise ConfigError("give --topic TOPIC[:0,1], once or more")
    return run_with_admin(_delete, arguments)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    partitions = await chosen_partitions(admin, arguments.topic)
    failed: dict[TopicPartition, Kip848Error] = {}
    try:
        await admin.delete_group_offsets(arguments.group, partitions)
    except AdminFailed as err:
        failed = err.errors
    status = {
        tp: f"Error: {said(failed[tp])}" if tp in failed else "Successful" for tp in partitions
    }
    if arguments.json:
        put_json(
            [
                {"topic": tp.topic, "partition": tp.partition, "status": text}
                for tp, text in status.items()
            ]
        )
        return 1 if failed else 0
    if failed:
        error("Encountered some partition-level error, see the follow-up details.")
    else:
        put(f"Request succeeded for deleting offsets from group {arguments.group}.")
    columns = [
        Column("TOPIC", grows=True, fit=Fit.FOLDED),
        Column("PARTITION", 10),
        Column("STATUS", fit=Fit.FOLDED),
    ]
    rows = [(tp.topic, tp.partition, text) for tp, text in status.items()]
    put("")
    put_table(Table(columns, rows))
    return 1 if failed else 0
