"""SCRAM credentials of users, as a broker keeps them in its cluster metadata (KIP-554, RFC 5802).

A broker stores neither a password nor a salted one: an administrator's tool sends the salted
password once, and the two keys that a server needs are derived from it. ``stored_key`` checks a
client's proof, ``server_key`` proves to the client that the server has the keys.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["SCRAM_MECHANISMS", "ScramCredential", "ScramMechanism", "ScramStore"]


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One mechanism: Kafka's number and name for it, its hash, the iterations that are allowed."""

    number: int
    name: str
    hash_name: str
    min_iterations: int
    max_iterations: int = 16384


SCRAM_MECHANISMS: Final[Mapping[int, ScramMechanism]] = {
    1: ScramMechanism(1, "SCRAM-SHA-256", "sha256", 4096),
    2: ScramMechanism(2, "SCRAM-SHA-512", "sha512", 4096),
}
"""By Kafka's number."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server needs to authenticate one user with one mechanism."""

    mechanism: int
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def from_salted_password(
        cls, mechanism: int, iterations: int, salt: bytes, salted_password: bytes
    ) -> ScramCredential:
        """The credential of a password that was salted by the client (``SaltedPassword`` of RFC
        5802). Raises ``KeyError`` for an unknown mechanism."""
        name = SCRAM_MECHANISMS[mechanism].hash_name
        client_key = hmac.digest(salted_password, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        server_key = hmac.digest(salted_password, b"Server Key", name)
        return cls(mechanism, iterations, salt, stored_key, server_key)


class ScramStore:
    """The credentials of all users: at most one per user and mechanism."""

    def __init__(self) -> None:
        self._users: dict[str, dict[int, ScramCredential]] = {}

    @property
    def users(self) -> tuple[str, ...]:
        """The users that have credentials, sorted."""
        return tuple(sorted(self._users))

    def of(self, user: str) -> tuple[ScramCredential, ...]:
        """A user's credentials by mechanism, none for an unknown user."""
        own = self._users.get(user, {})
        return tuple(own[mechanism] for mechanism in sorted(own))

    def get(self, user: str, mechanism: int) -> ScramCredential | None:
        """A user's credential for one mechanism (Kafka's number of it)."""
        return self._users.get(user, {}).get(mechanism)

    def put(self, user: str, credential: ScramCredential) -> None:
        """Set a user's credential for its mechanism."""
        self._users.setdefault(user, {})[credential.mechanism] = credential

    def remove(self, user: str, mechanism: int) -> None:
        """Forget a user's credential. Raises ``KeyError`` when there is none."""
        own = self._users[user]
        del own[mechanism]
        if not own:
            del self._users[user]
