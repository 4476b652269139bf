"""One client's connection to a broker, as a pure core: bytes and the time in, actions out.

``ConnectionCore`` has all rules of a connection: frames and their maximum length, authentication,
one request at a time, responses in order, timeouts, and when the connection ends and why. It has no
socket, clock or task. Its driver (``mock_coordinator.tcp`` has two) does this:

1. Create the core with the time and the connection's number. With ``authenticator=None`` it begins
   with the TLS handshake: call ``secured`` or ``broken`` when that is over.
2. Pass on what the client sends: ``receive``, and ``ended`` when the client sends no more.
3. Pass on what the broker returns: ``answered``, ``closed_by_broker``.
4. Call ``tick`` at ``deadline_ms``. Early and needless calls are harmless. Pass on data that had
   arrived by then first: a broker that was busy does not consider its clients idle.
5. Perform the actions that each call returns, in order, before the next call:

   ``Submit``   pass the request to the broker; its response may come at once
   ``Write``    send these bytes, and call ``taken`` when the client has received all of them
   ``Signal``   ``PAUSE`` and ``RESUME`` reading; call ``proceed`` in the next iteration of the
                event loop (``NEXT_TURN``); read ``deadline_ms`` again, it is earlier now
                (``SET_TIMER``)
   ``Close``    close the connection now, and log the text if there is one

6. Call ``lost`` when the connection is gone. After that, and after ``Close``, calls have no effect.
"""

from __future__ import annotations

from mock_coordinator.connection.actions import Action, Close, Signal, Submit, Write
from mock_coordinator.connection.authenticator import AuthenticatorFactory, ConnectionAuthenticator
from mock_coordinator.connection.core import ConnectionCore
from mock_coordinator.connection.settings import ConnectionSettings

__all__ = [
    "Action",
    "AuthenticatorFactory",
    "Close",
    "ConnectionAuthenticator",
    "ConnectionCore",
    "ConnectionSettings",
    "Signal",
    "Submit",
    "Write",
]
