"""``kip848 groups``: list, describe, reset, delete, configure and watch consumer groups.

Options, columns and texts are those of kafka-consumer-groups. There is one module per action;
``_views`` has the tables, ``_selection`` the choice of groups and partitions.
"""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Final

from kip848_client.cli._output import put
from kip848_client.cli.groups import (
    _config,
    _delete,
    _delete_offsets,
    _describe,
    _list,
    _reset_offsets,
    _watch,
)
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]

_ACTIONS: Final[dict[str, tuple[ModuleType, str]]] = {
    "list": (
        _list,
        "names of all consumer groups, with states and types if asked for; others by --type",
    ),
    "describe": (_describe, "offsets and lag, members or state of groups"),
    "reset-offsets": (_reset_offsets, "let a group without members begin elsewhere"),
    "delete-offsets": (_delete_offsets, "forget what a group has committed for some topics"),
    "delete": (_delete, "delete groups without members"),
    "config": (_config, "show or change the settings of a group"),
    "watch": (_watch, "follow a group while it rebalances"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of each action."""
    parser.add_argument(
        "--validate-regex",
        metavar="REGEX",
        help="only say whether brokers would take this pattern of a subscription",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, (module, text) in _ACTIONS.items():
        module.configure(actions.add_parser(name, help=text, description=text))


def run(arguments: argparse.Namespace) -> int:
    """Run an action; exit code 1 if any part of it failed. Raises ``ConfigError``."""
    if arguments.validate_regex is not None:
        return _validate_regex(arguments.validate_regex)
    if arguments.action is None:
        raise ConfigError(f"give an action: {', '.join(_ACTIONS)}; or --validate-regex")
    module, _ = _ACTIONS[arguments.action]
    code: int = module.run(arguments)
    return code


def _validate_regex(pattern: str) -> int:
    from kip848_client.consumer._patterns import checked_pattern

    try:
        checked_pattern(pattern)
    except ConfigError as err:
        put(f"The regular expression `{pattern}` is invalid: {err}")
        return 1
    put(f"The regular expression `{pattern}` is valid.")
    return 0
