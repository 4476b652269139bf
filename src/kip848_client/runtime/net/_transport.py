"""``Transport`` on aiokafka's connections: bootstrap, any broker, one broker, the coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.bootstrap import bootstrap_addresses
from kip848_client.core.ports import Clock, ConnectionWatch, NotSent
from kip848_client.core.types import ANY_VERSION, VersionLimits
from kip848_client.core.wire import api_named, negotiate, request_api
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.errors import (
    CoordinatorUnavailable,
    Kip848Error,
    ProtocolUnsupported,
    TransportError,
    refusal,
)
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._first_answer import FirstAnswer
from kip848_client.runtime.net._first_server import first_to_connect
from kip848_client.runtime.net._links import Link, LinkPool
from kip848_client.runtime.random import CHANCE

__all__ = ["KafkaTransport", "protocol_unsupported"]

_FIND_VERSIONS: Final[VersionLimits] = (4, 32767)
"""Version 4 takes a list of keys (KIP-699)."""
_GROUP_KEY_TYPE: Final = 0
_HEARTBEAT: Final = api_named("ConsumerGroupHeartbeat")
_PREPARE: Final = api_named("ConsumerGroupPrepareAssignment")
_INSTALL: Final = api_named("ConsumerGroupInstallAssignment")


class KafkaTransport:
    """See ``kip848_client.core.ports.Transport``. Call ``bootstrap`` first, ``close`` at the
    end."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        group_id: str | None,
        options: ConnectionOptions,
        clock: Clock,
        *,
        fetch_max_wait_ms: int = 0,
    ) -> None:
        self._servers = bootstrap_addresses(bootstrap_servers)
        self._group_id = group_id
        self._timeout_ms = options.request_timeout_ms
        self._links = LinkPool(options, clock)
        # A fetch that waited as long as it may is not late.
        patient = replace(options, request_timeout_ms=self._timeout_ms + fetch_max_wait_ms)
        self._fetch_links = LinkPool(patient, clock)
        self._produce_links = LinkPool(options, clock)
        self._beside_links = LinkPool(options, clock)
        self._waiting_links = LinkPool(options, clock)
        self._beside: Link | None = None
        self._bootstrap: Link | None = None
        self._nodes: dict[int, tuple[str, int]] = {}
        self._coordinator: Link | None = None
        self._lookup: asyncio.Task[None] | None = None
        self._first_answer = FirstAnswer()
        self._meter: ConnectionWatch | None = None

    def measure(self, meter: ConnectionWatch) -> None:
        """Measure all connections by ``meter``. Call it before the first one."""
        self._meter = meter
        meter.servers(self._servers)
        for pool in self._pools:
            pool.measure(meter)

    async def bootstrap(self) -> Link:
        """Connect to the first bootstrap server that answers. Raises ``BootstrapFailed`` with the
        reason for each server, ``BrokerError`` if our credentials are refused."""
        links = [self._links.to(*address) for address in self._servers]
        CHANCE.shuffle(links)  # otherwise all clients would ask the first one
        self._bootstrap = await first_to_connect(links)
        return self._bootstrap

    def require_kip848(self, link: Link) -> None:
        """Raise ``ProtocolUnsupported`` unless the broker serves ConsumerGroupHeartbeat v1."""
        offered = link.offered.get(_HEARTBEAT.key)
        if offered is not None and offered[0] <= 1 <= offered[1]:
            return
        raise protocol_unsupported(f"{link.host}:{link.port}", offered)

    def require_client_assignors(self, link: Link) -> None:
        """Raise ``ProtocolUnsupported`` unless the broker lets members compute assignments."""
        missing = [each for each in (_PREPARE, _INSTALL) if each.key not in link.offered]
        if not missing:
            return
        raise ProtocolUnsupported(
            35,
            "UNSUPPORTED_VERSION",
            f"broker {link.host}:{link.port} does not offer it: members cannot compute the "
            "assignment there",
            api=f"{missing[0].name} (API key {missing[0].key})",
            hint="leave group_local_assignors away and let the broker assign "
            "(group_remote_assignor='uniform' or 'range'); client-side assignors are in the text "
            "of KIP-848 and in no Kafka release, but in MockBroker and `kip848 mock`",
        )

    def learn_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        self._nodes = {}
        self.add_brokers(brokers)

    def add_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        self._nodes |= {node_id: (host, port) for node_id, host, port in brokers}
        if self._meter is not None:
            self._meter.brokers(self._nodes)

    async def begin_anew(self) -> None:
        self._nodes = {}
        self._bootstrap = self._coordinator = self._beside = None
        await self._first_answer.close()
        why = NotSent("the client starts over from its bootstrap servers")
        await asyncio.gather(*(pool.close(why) for pool in self._pools))

    async def close(self, why: Kip848Error | None = None) -> None:
        """Close every connection; later sends raise ``why``."""
        if self._lookup is not None:
            self._lookup.cancel()
            await asyncio.gather(self._lookup, return_exceptions=True)
        await self._first_answer.close()
        await asyncio.gather(*(pool.close(why) for pool in self._pools))

    @property
    def _pools(self) -> tuple[LinkPool, ...]:
        return (
            self._links,
            self._fetch_links,
            self._produce_links,
            self._beside_links,
            self._waiting_links,
        )

    async def any_broker(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        return await self._first_answer.of(
            self.candidates(),
            lambda link: link.send(request, versions, timeout_ms or self._timeout_ms),
        )

    async def broker(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> Any:
        link = self.link_to(node_id)
        return await link.send(request, versions, timeout_ms or self._timeout_ms)

    async def one_broker(self, request: Any, *, timeout_ms: int) -> Any:
        """Ask one broker, and no other if it does not answer; the same one next time if it does. It
        uses a dedicated connection, so that a slow broker blocks nothing else."""
        api = request_api(request)
        if not self._links.offers(api.key):
            negotiate(api, None)  # this raises the error with what is missing
        if self._beside is None:
            first = self.candidates()[0]
            self._beside = self._beside_links.to(first.host, first.port)
        try:
            return await self._beside.send(request, ANY_VERSION, timeout_ms)
        except TransportError:
            self._beside = None
            raise

    async def fetch(
        self, node_id: int, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        link = self._fetch_links.to(*self._address(node_id))
        return await link.send(request, versions, timeout_ms)

    async def produce(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits,
        timeout_ms: int,
        is_answered: bool,
    ) -> Any:
        """Send records to one broker, in the order of these calls, on a dedicated connection: later
        requests wait until all replicas have them."""
        link = self._produce_links.to(*self._address(node_id))
        return await link.send_in_turn(request, versions, timeout_ms, is_answered=is_answered)

    def opened(self, node_id: int) -> int:
        """Number of connections opened to this broker, other than for fetches or records: a
        restarted broker may have new metadata."""
        address = self._nodes.get(node_id)
        return 0 if address is None else self._links.to(*address).opened

    def link_to(self, node_id: int) -> Link:
        """Return the link to one broker for everything except fetches and records."""
        return self._links.to(*self._address(node_id))

    def _address(self, node_id: int) -> tuple[str, int]:
        address = self._nodes.get(node_id)
        if address is None:
            raise NotSent(f"broker {node_id} is not in the cluster's metadata")
        return address

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        link = self._coordinator
        if link is None:
            raise CoordinatorUnavailable(
                f"the coordinator of group {self._group_id!r} is not known"
            )
        return await link.send(request, versions, timeout_ms or self._timeout_ms)

    async def coordinator_that_waits(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        link = self._coordinator
        if link is None:
            raise CoordinatorUnavailable(
                f"the coordinator of group {self._group_id!r} is not known"
            )
        waiting = self._waiting_links.to(link.host, link.port)
        return await waiting.send(request, versions, timeout_ms)

    @property
    def knows_coordinator(self) -> bool:
        """Whether the group's coordinator was found and not dropped since."""
        return self._coordinator is not None

    @property
    def coordinator_address(self) -> str | None:
        """``host:port`` of the group's coordinator, ``None`` while it is not known."""
        link = self._coordinator
        return None if link is None else f"{link.host}:{link.port}"

    async def find_coordinator(self) -> None:
        if self._coordinator is not None:
            return
        if self._lookup is None or self._lookup.done():
            self._lookup = asyncio.get_running_loop().create_task(self._find())
            self._lookup.add_done_callback(_retrieve)  # every waiter may have been cancelled
        await asyncio.shield(self._lookup)

    def forget_coordinator(self) -> None:
        self._coordinator = None

    async def _find(self) -> None:
        group = self._group_id
        assert group is not None, "only clients with a group look for its coordinator"
        request = FindCoordinatorRequest(key_type=_GROUP_KEY_TYPE, coordinator_keys=(group,))
        answer = await self.any_broker(request, versions=_FIND_VERSIONS)
        if not answer.coordinators:
            raise CoordinatorUnavailable(f"FindCoordinator said nothing about group {group!r}")
        found = answer.coordinators[0]
        if found.error_code != 0:
            raise refusal(found.error_code, found.error_message, api="FindCoordinator")
        self._coordinator = self._links.to(found.host, found.port)

    def candidates(self) -> list[Link]:
        """All brokers in the order to ask them: connected ones first, bootstrap servers after the
        others (KIP-899), throttling ones last."""
        links = [self._links.to(host, port) for host, port in self._nodes.values()]
        CHANCE.shuffle(links)
        links.sort(key=lambda link: not link.is_open)
        servers = [self._links.to(*address) for address in self._servers]
        CHANCE.shuffle(servers)
        links += servers
        if self._bootstrap is not None and not self._nodes:
            links.insert(0, self._bootstrap)
        return sorted(dict.fromkeys(links), key=lambda link: link.is_muted)


def _retrieve(lookup: asyncio.Task[None]) -> None:
    if not lookup.cancelled():
        lookup.exception()


def protocol_unsupported(where: str, offered: tuple[int, int] | None) -> ProtocolUnsupported:
    """Build the error for a broker without KIP-848, with its offered versions and a hint."""
    has = "does not offer it" if offered is None else f"offers v{offered[0]} to v{offered[1]}"
    return ProtocolUnsupported(
        35,
        "UNSUPPORTED_VERSION",
        f"broker {where} {has}; KIP-848 needs v1",
        api="ConsumerGroupHeartbeat (API key 68)",
        hint="use Apache Kafka 4.0 or newer with 'consumer' in "
        "group.coordinator.rebalance.protocols and feature group.version at 1, "
        "or a client of the classic protocol such as aiokafka.AIOKafkaConsumer",
    )
