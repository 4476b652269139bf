"""``kip848 topics``: list, describe, create, delete and alter topics.

Options and texts are those of kafka-topics.
"""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Final

from kip848_client.cli.topics import _alter, _create, _delete, _describe, _list

__all__ = ["configure", "run"]

_ACTIONS: Final[dict[str, tuple[ModuleType, str]]] = {
    "list": (_list, "names of all topics"),
    "describe": (_describe, "partitions, leaders, replicas and settings of topics"),
    "create": (_create, "create a topic"),
    "delete": (_delete, "delete topics with their records"),
    "alter": (_alter, "more partitions, other settings"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of each action."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (module, text) in _ACTIONS.items():
        module.configure(actions.add_parser(name, help=text, description=text))


def run(arguments: argparse.Namespace) -> int:
    """Run an action; exit code 1 if any part of it failed. Raises ``ConfigError``."""
    module, _ = _ACTIONS[arguments.action]
    code: int = module.run(arguments)
    return code
