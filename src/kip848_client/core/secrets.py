"""Secret settings, whose values are never shown.

Pure. Messages, ``repr`` and dumps of settings go through here, so that no password, key or token
reaches a log or a traceback.
"""

from __future__ import annotations

import re
from typing import Final

from kip848_client.core.short import short

__all__ = ["HIDDEN", "Passwords", "Properties", "is_secret", "shown_setting"]

HIDDEN: Final = "'**********'"
"""Shown instead of a secret, as pydantic does."""

_SECRET_NAMES: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|basic.auth|user.info"
    r"|(access|api|account|private|keystore).?key|certificate",
    re.IGNORECASE,
)
"""Kafka's settings of type PASSWORD, the names that Spark redacts, and similar names."""
_LOGIN: Final = re.compile(r":.*@", re.DOTALL)
"""A password in an address, as in ``user:password@host``."""
_ASSIGNED: Final = re.compile(r"(passw\w*|secret|token|jaas\.\w+)[\"']?\s*[=:]", re.IGNORECASE)
"""A secret within a value, as in ``password="..."``."""
_PEM: Final = "-----BEGIN"


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name must not be shown."""
    return _SECRET_NAMES.search(name) is not None


def shown_setting(name: str, value: object) -> str:
    """Return the value of a setting for a message, shortened; ``HIDDEN`` if it is or contains a
    secret.
    """
    if is_secret(name):
        return HIDDEN
    try:
        whole = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail because of the value it shows
        return short(value)
    is_address = "bootstrap" in name and "@" in whole
    has_secret = _LOGIN.search(whole) or _ASSIGNED.search(whole) or _PEM in whole
    return HIDDEN if is_address or has_secret else short(value)


class Properties(dict[str, str]):
    """A ``dict`` of settings whose ``repr`` hides secrets."""

    def __repr__(self) -> str:
        said = (f"{name!r}: {self._shown(name, value)}" for name, value in self.items())
        return f"{{{', '.join(said)}}}"

    def _shown(self, name: str, value: str) -> str:
        return shown_setting(name, value)

    def masked(self) -> dict[str, str]:
        """A copy with ``HIDDEN`` instead of secrets, for dumps."""
        hidden = HIDDEN.strip("'")
        return {
            name: hidden if self._shown(name, value) == HIDDEN else value
            for name, value in self.items()
        }


class Passwords(Properties):
    """Passwords by user; ``repr`` hides every value."""

    def _shown(self, name: str, value: str) -> str:
        del name, value
        return HIDDEN
