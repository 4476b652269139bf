"""``kip848 mock`` with loaded dice: the same broker, whose random ids can be said beforehand.

``python -m tests.differential._mock_process PROFILE [NAME=VALUE ...]``, where ``security=JSON``
is as the file of ``kip848 mock --security``.

What a broker draws by lot decides real answers: which member leads a group, which member gets which
partitions follow from the hash of ids. A line of hexadecimal ids on the control connection says
what the next draws shall be, in order; an empty line takes back what was not drawn. Each line is
answered ``ok``. Without such lines it draws at random, as ``kip848 mock`` does. The line ``seen N``
asks whether the core was given the request with that correlation id; ``no`` says that it was not.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio
import anyio.abc

from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import Input, RequestReceived
from mock_coordinator.core.outputs import Output
from mock_coordinator.mock_broker import MockBroker
from mock_coordinator.security.options import SecurityOptions

__all__ = ["main"]

_SEEN: Final = "seen "
_REMEMBERED: Final = 10_000


class Dice:
    """A source of 16-byte ids: those that were said, else random ones."""

    def __init__(self) -> None:
        self._said: deque[bytes] = deque()

    def load(self, line: str) -> None:
        """Forget what was said before, and draw these hexadecimal ids next."""
        self._said = deque(bytes.fromhex(each) for each in line.split())

    def __call__(self) -> bytes:
        return self._said.popleft() if self._said else os.urandom(16)


class Seen:
    """The correlation ids of the last requests that were given to the core."""

    def __init__(self) -> None:
        self._ids: dict[int, None] = {}
        step = ClusterCore.step

        def noting(core: ClusterCore, now_ms: int, event: Input) -> tuple[Output, ...]:
            if isinstance(event, RequestReceived):
                self._ids[event.correlation] = None
                if len(self._ids) > _REMEMBERED:
                    del self._ids[next(iter(self._ids))]
            return step(core, now_ms, event)

        ClusterCore.step = noting  # type: ignore[method-assign,assignment]  # nobody else tells

    def answer(self, line: str) -> bytes:
        """The answer to a line that asks."""
        return b"ok\n" if int(line.removeprefix(_SEEN)) in self._ids else b"no\n"


async def _serve(profile: str, config: dict[str, str]) -> None:
    dice = Dice()
    seen = Seen()
    security = config.pop("security", None)
    broker = MockBroker(
        profile=profile,
        config=config,
        new_uuid=dice,
        log_size=0,
        security=None if security is None else SecurityOptions.from_data(json.loads(security)),
    )
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def control(stream: anyio.abc.SocketStream) -> None:
        text = b""
        async with stream:
            async for chunk in stream:
                text += chunk
                while b"\n" in text:
                    first, _, text = text.partition(b"\n")
                    line = first.decode()
                    if line.startswith(_SEEN):
                        await stream.send(seen.answer(line))
                    else:
                        dice.load(line)
                        await stream.send(b"ok\n")

    async with broker, listener:
        host, port = broker.address
        control_port = listener.extra(anyio.abc.SocketAttribute.local_port)
        sasl_port = 0
        if security is not None:
            sasl_port = int(broker.bootstrap_of("SASL").rpartition(":")[2])
        sys.stdout.write(f"listening on {host}:{port} control {control_port} sasl {sasl_port}\n")
        sys.stdout.flush()
        await listener.serve(control)


def main(arguments: Sequence[str]) -> None:
    profile, *settings = arguments
    config = dict(each.split("=", 1) for each in settings)
    anyio.run(_serve, profile, config)


if __name__ == "__main__":
    main(sys.argv[1:])
