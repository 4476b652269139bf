"""``kip848 groups config``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._configs import (
    add_changes,
    changes_of,
    configs_data,
    configs_lines,
    unknown_settings,
)
from kip848_client.cli._connecting import add_connection, put_json, report, run_with_admin
from kip848_client.cli._output import put

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument("--group", required=True, metavar="GROUP", help="the group")
    add_changes(parser)
    parser.add_argument("--all", action="store_true", help="show defaults, too")


def run(arguments: argparse.Namespace) -> int:
    """Show the settings, or change some."""
    arguments.changes = changes_of(arguments)
    return run_with_admin(_config, arguments)


async def _config(admin: Admin, arguments: argparse.Namespace) -> int:
    group = arguments.group
    if arguments.delete_config:
        known = (await admin.describe_group_configs([group]))[group]
        unknown = unknown_settings(arguments, known)
        if unknown is not None:
            report([unknown], arguments)
            return 1
    if arguments.changes:
        await admin.alter_group_configs({group: arguments.changes})
        if not arguments.json:
            put(f"Completed updating config for group {group}.")
            return 0
    configs = await admin.describe_group_configs([group])
    if arguments.json:
        put_json(configs_data(configs))
    else:
        put(*configs_lines("group", configs, everything=arguments.all))
    return 0
