"""Harm of the network between clients and brokers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from tests.support.tcp_proxy import Cut
from tests.torture.brokers import NODES
from tests.torture.scene import Scene

__all__ = ["cutting"]

_LASTS_S: Final = (0.5, 8.0)
"""Shorter than sessions and transactions, or longer."""


def cutting(cut: Cut) -> Callable[[Scene, random.Random], Awaitable[None]]:
    """Clients are cut from brokers in this way, and the network is healed."""

    async def do(scene: Scene, dice: random.Random) -> None:
        assert scene.proxy is not None
        nodes, clients = dice.choice([(1, None), (1, 1), (len(NODES), 1)])
        broken = dice.sample(NODES, nodes)
        alone = None if clients is None else dice.sample(scene.processes.names, clients)
        who = "all" if alone is None else ", ".join(alone)
        whom = f"of {who} and brokers {', '.join(map(str, sorted(broken)))}"
        with scene.chronicle.lasting(cut.value, whom):
            them = None if alone is None else frozenset(alone)
            with scene.proxy.cut(cut, frozenset(broken), them):
                await asyncio.sleep(dice.uniform(*_LASTS_S))

    return do
