"""Errors that end a pipeline, or prevent its start."""

from __future__ import annotations

from kip848_client.errors import ConfigError, Kip848Error

__all__ = ["DriverReplaced", "OutputRefused", "PipelineFailed"]


class PipelineFailed(Kip848Error):
    """The pipeline ended with an error.

    Rows that were not written completely are not committed: a restart continues there.
    """


class OutputRefused(ConfigError):
    """Output directory and checkpoint do not belong together, or others use them."""


class DriverReplaced(PipelineFailed):
    """Another driver has taken over the output. This one has written nothing since."""
