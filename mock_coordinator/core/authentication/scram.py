"""One SCRAM exchange on the server side (RFC 5802, RFC 7677, KIP-84): two messages each way.

The client sends a user name and a nonce; the server extends the nonce, and returns the salt and the
iteration count of the password's hash. The client proves that it knows the password without sending
it; the server proves that it knows the stored keys. Only the user's stored keys are needed. The
server's part of the nonce is an argument.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final

from mock_coordinator.core.authentication.failures import CREDENTIALS_DIFFER, SaslFailure
from mock_coordinator.core.security.scram_store import ScramCredential, ScramMechanism

__all__ = ["ScramExchange"]

_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,]*))?,"
    r"(?P<bare>n=(?P<user>[^,]+),r=(?P<nonce>[!-+\--~]+))(?P<more>,.*)?",
    re.DOTALL,
)
_FINAL: Final = re.compile(
    r"(?P<unproven>c=(?P<binding>[^,]+),r=(?P<nonce>[!-+\--~]+)(?:,.*)?),p=(?P<proof>[^,]+)",
    re.DOTALL,
)


class ScramExchange:
    """The server's side of one authentication.

    ``credential_of`` looks up a user, ``new_nonce`` gives fresh printable text without commas.
    ``answer`` takes the client's messages in order and returns the server's; after the second one
    ``user`` is the authenticated name. Raises ``SaslFailure``.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: Callable[[str], ScramCredential | None],
        new_nonce: Callable[[], str],
    ) -> None:
        self._mechanism: Final = mechanism
        self._credential_of: Final = credential_of
        self._new_nonce: Final = new_nonce
        self._claimed = ""
        self._nonce = ""
        self._so_far = ""
        self._header = ""
        self._credential: ScramCredential | None = None
        self.user: str | None = None

    def answer(self, token: bytes) -> bytes:
        """The server's next message."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise SaslFailure from None
        if self._credential is None:
            return self._first(text)
        return self._final(text, self._credential)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        # extensions are for delegation tokens, which this broker does not know
        if found is None or found["more"]:
            raise SaslFailure
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        if found["authzid"] and found["authzid"] != user:
            raise SaslFailure(CREDENTIALS_DIFFER)
        credential = self._credential_of(user)
        if credential is None:
            raise SaslFailure
        self._claimed, self._credential = user, credential
        self._header = text[: text.index(found["bare"])]
        self._nonce = found["nonce"] + self._new_nonce()
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._so_far = f"{found['bare']},{answer}"
        return answer.encode()

    def _final(self, text: str, credential: ScramCredential) -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None or found["nonce"] != self._nonce:
            raise SaslFailure
        try:
            binding = base64.b64decode(found["binding"], validate=True)
            proof = base64.b64decode(found["proof"], validate=True)
        except ValueError:  # not base64, or not even ASCII
            raise SaslFailure from None
        name = self._mechanism.hash_name
        message = f"{self._so_far},{found['unproven']}".encode()
        signature = hmac.digest(credential.stored_key, message, name)
        if binding != self._header.encode():
            raise SaslFailure
        if len(proof) != len(signature):
            raise SaslFailure(silent=True)  # Kafka trips over it
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(name, client_key).digest(), credential.stored_key):
            raise SaslFailure
        self.user = self._claimed
        verifier = hmac.digest(credential.server_key, message, name)
        return b"v=" + base64.b64encode(verifier)
