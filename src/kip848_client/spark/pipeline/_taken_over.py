"""An output directory that one driver writes: another one that still runs is detected."""

from __future__ import annotations

import json
import os
import platform
import secrets
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import DriverReplaced
from kip848_client.spark.pipeline._files import Files

__all__ = ["STAGING", "TakenOver"]

STAGING: Final = "_staging"
"""The staging directory; Parquet readers ignore names that begin with an underscore."""
_DRIVER: Final = "_driver.json"


class TakenOver:
    """One output directory."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path.rstrip("/")
        self._token = secrets.token_hex(8)

    def take_over(self) -> None:
        """Make this the only driver that writes here: one that still runs elsewhere ends with
        ``DriverReplaced``. Incomplete files of earlier drivers are removed."""
        who = {"token": self._token, "host": platform.node(), "pid": os.getpid()}
        self._files.write(f"{self._path}/{_DRIVER}", json.dumps(who, sort_keys=True) + "\n")
        self._files.remove(f"{self._path}/{STAGING}")

    def staged(self, number: int) -> str:
        """The staging directory for the rows of a batch."""
        return f"{self._path}/{STAGING}/{self._token}-{number}"

    def discard(self, number: int) -> None:
        """Remove the staging directory of a batch."""
        self._files.remove(self.staged(number))

    def check_driver(self) -> None:
        """Raise ``DriverReplaced`` if another driver has taken over the output."""
        text = self._files.read(f"{self._path}/{_DRIVER}")
        try:
            said = cast("dict[str, Any]", json.loads(text or "{}"))
        except ValueError:
            said = {}
        if said.get("token") != self._token:
            who = f"process {said.get('pid')} on {said.get('host')}" if said else "another process"
            raise self.replaced_by(who)

    def replaced_by(self, who: str) -> DriverReplaced:
        """The error for an output that another driver has taken over."""
        return DriverReplaced(
            f"{who} has taken over the output {self._path}: two drivers run with one checkpoint. "
            "This one has written nothing since, and stops; run only one"
        )
