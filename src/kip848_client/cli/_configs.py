"""Settings on the command line: ``--config``, ``--add-config``, ``--delete-config``; printing
settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from kip848_client.admin import ConfigEntry
from kip848_client.errors import ConfigError

__all__ = [
    "add_changes",
    "changes_of",
    "configs_data",
    "configs_lines",
    "parse_settings",
    "unknown_settings",
]


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Declare the options to change settings, named as in kafka-configs."""
    parser.add_argument(
        "--add-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a setting; may be given more than once",
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="KEY",
        help="give a setting back to its default; may be given more than once",
    )


def changes_of(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return new values by name; ``None`` for the default. Raises ``ConfigError``."""
    changes: dict[str, str | None] = dict(parse_settings(arguments.add_config, "--add-config"))
    for key in arguments.delete_config:
        if key in changes:
            raise ConfigError(f"{key} is both set and given back to its default")
        changes[key] = None
    return changes


def unknown_settings(arguments: argparse.Namespace, known: Iterable[ConfigEntry]) -> str | None:
    """Return the error for deleting settings that do not exist: brokers silently accept that."""
    names = {each.name for each in known}
    unknown = [each for each in arguments.delete_config if each not in names]
    return f"Invalid config(s): {','.join(unknown)}" if unknown else None


def parse_settings(texts: Iterable[str], option: str) -> dict[str, str]:
    """Parse ``KEY=VALUE`` texts. Raises ``ConfigError``."""
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"{option} {text!r}: expected KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def configs_lines(
    kind: str, configs: Mapping[str, Iterable[ConfigEntry]], *, everything: bool
) -> list[str]:
    """One section per group or topic: the settings that were set, or ``everything``."""
    lines: list[str] = []
    for name, entries in configs.items():
        which = "All" if everything else "Dynamic"
        lines.append(f"{which} configs for {kind} {name} are:")
        lines += [
            f"  {each.name}={each.value} sensitive={str(each.is_sensitive).lower()} "
            f"synonyms={{{_synonyms(each)}}}"
            for each in entries
            if everything or each.is_own
        ]
    return lines


def _synonyms(entry: ConfigEntry) -> str:
    return ", ".join(f"{each.source.name}:{each.name}={each.value}" for each in entry.synonyms)


def configs_data(configs: Mapping[str, Iterable[ConfigEntry]]) -> dict[str, list[dict[str, Any]]]:
    """The data for ``--json``."""
    return {
        name: [
            {
                "name": each.name,
                "value": each.value,
                "source": each.source.name,
                "is_read_only": each.is_read_only,
                "is_sensitive": each.is_sensitive,
                "synonyms": [
                    {"name": one.name, "value": one.value, "source": one.source.name}
                    for one in each.synonyms
                ],
            }
            for each in entries
        ]
        for name, entries in configs.items()
    }
