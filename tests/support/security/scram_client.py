"""The client's side of SCRAM, with room for mistakes."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

__all__ = ["ScramClient"]


class ScramClient:
    """Makes the two messages of a client for a user and password."""

    def __init__(self, user: str, password: str, hash_name: str = "sha256") -> None:
        self._password: Final = password
        self._hash: Final = hash_name
        self._bare: Final = f"n={user},r=fyko+d2lbbFgONRv9qkxdawL"

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes, *, nonce_suffix: str = "", proof: str = "") -> bytes:
        """The proof; with another nonce, or another proof, if you like."""
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, rounds)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        unproven = f"c=biws,r={fields['r']}{nonce_suffix}"
        message = f"{self._bare},{server_first.decode()},{unproven}".encode()
        signature = hmac.digest(stored_key, message, self._hash)
        proved = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{unproven},p={proof or base64.b64encode(proved).decode()}".encode()

    def server_signature(self, server_first: bytes, final: bytes) -> bytes:
        """What the server must answer to prove that it knew the password, too."""
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, rounds)
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        unproven = final.decode().rsplit(",p=", 1)[0]
        message = f"{self._bare},{server_first.decode()},{unproven}".encode()
        return b"v=" + base64.b64encode(hmac.digest(server_key, message, self._hash))
