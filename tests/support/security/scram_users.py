"""Users of SCRAM, as an administrator makes them known to a broker."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MECHANISMS", "scram_upsertions"]

MECHANISMS: Final = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""The number that AlterUserScramCredentials has for it, and the hash."""
_SALT: Final = b"grains of salt"
_ITERATIONS: Final = 4096


def scram_upsertions(passwords: Mapping[str, str], mechanism: str) -> list[dict[str, Any]]:
    """The rows of AlterUserScramCredentials for these users."""
    number, hash_name = MECHANISMS[mechanism]
    return [
        {
            "name": user,
            "mechanism": number,
            "iterations": _ITERATIONS,
            "salt": _SALT,
            "salted_password": hashlib.pbkdf2_hmac(
                hash_name, password.encode(), _SALT, _ITERATIONS
            ),
        }
        for user, password in passwords.items()
    ]
