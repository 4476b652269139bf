"""One client's connection to a broker, as a pure core: bytes and the time in, actions out.

``ConnectionCore`` has every rule of a connection: frames and how long they may be, who the client
is, one request at a time, answers in the order of the requests, how long anything may take, when
the connection ends and with which words. It has no socket, no clock and no task. Its driver (two
are in ``mock_coordinator.tcp``) does this:

1. Make the core with the time and the connection's number. With ``authenticator=None`` it begins
   with the TLS handshake: tell it ``secured`` or ``broken`` when that is over.
2. Hand over what the client sends: ``receive``, and ``ended`` when the client will send no more.
3. Hand over what the broker says: ``answered``, ``closed_by_broker``.
4. Call ``tick`` at ``deadline_ms``. Early and needless calls are harmless. What had arrived by then
   is handed over first: a broker that was busy does not call its clients idle.
5. Perform what each call returns, in order, before the next call:

   ``Submit``   take the request to the broker; its answer may come at once
   ``Write``    send these bytes, and call ``taken`` when the client has taken all of them
   ``Signal``   ``PAUSE`` and ``RESUME`` reading; call ``proceed`` in the next round of the event
                loop (``NEXT_TURN``); look at ``deadline_ms`` again, it is earlier than it was
                (``SET_TIMER``)
   ``Close``    close the connection now, with a line in the log where there are words

6. Call ``lost`` when the connection is gone. After that, and after ``Close``, no call has an
   effect.
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
