"""``kip848 groups delete``."""

from __future__ import annotations

import argparse

from kip848_client.admin import Admin
from kip848_client.cli._connecting import add_connection, error, put_json, run_with_admin, said
from kip848_client.cli._output import put
from kip848_client.cli.groups._selection import add_groups, checked_groups, chosen_groups
from kip848_client.errors import AdminFailed, Kip848Error

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    add_groups(parser)


def run(arguments: argparse.Namespace) -> int:
    """Delete groups without members. Exit code 1 if one remains."""
    checked_groups(arguments)
    return run_with_admin(_delete, arguments)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    groups = await chosen_groups(admin, arguments)
    failed: dict[str, Kip848Error] = {}
    if groups:
        try:
            await admin.delete_groups(groups)
        except AdminFailed as err:
            failed = err.errors
    gone = [each for each in groups if each not in failed]
    if arguments.json:
        errors = [{"group": group, "error": said(why)} for group, why in failed.items()]
        put_json({"deleted": gone, "failed": errors})
    elif failed:
        error("Deletion of some consumer groups failed:")
        for group, why in failed.items():
            put(f"* Group '{group}' could not be deleted due to: {said(why)}")
        if gone:
            put("", f"These consumer groups were deleted successfully: {_quoted(gone)}")
    else:
        put(f"Deletion of requested consumer groups ({_quoted(gone)}) was successful.")
    return 1 if failed else 0


def _quoted(groups: list[str]) -> str:
    return ", ".join(f"'{each}'" for each in groups)
