"""``kip848 simulate``: consumer groups in virtual time, on a faulty network, verified by
checkers."""

from __future__ import annotations

import argparse

from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]

_MISSING = "the simulation is not installed with this package"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments, which are those of the simulation itself."""
    try:
        from mock_coordinator.sim import command_line
    except ImportError:
        return  # run() reports it
    command_line.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the seeds: 0 if all checks passed for every seed, else 1. Raises ``ConfigError``."""
    try:
        from mock_coordinator.sim import command_line
    except ImportError as err:
        raise ConfigError(f"{_MISSING}: {err}") from err
    return command_line.run(arguments)
