"""Valid frames that nobody would send: all served APIs, fields at the edges of their types, names
and ids that the broker knows in places where they do not belong.

Nothing may raise inside of the broker, every answer must have a wire form, and an ordinary member
of an ordinary group must find the broker well afterwards. A broker that guards its resources gets
the same from principals with few rights.
"""

from __future__ import annotations

import logging
import random
from typing import Any, Final

import pytest

from kip848_client.core.wire import APIS, write_request, write_response
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.errors import WireError
from mock_coordinator import MockBroker, NewRecord, VirtualClock
from mock_coordinator.batches import encode_batch
from mock_coordinator.connection.requests import read_received
from mock_coordinator.core.inputs import ClientInfo, TimerFired
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.core.security.acls import acls_from_data
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.security import SecurityOptions
from tests.fuzz.random_messages import SharpMessages

REQUESTS: Final = 6_000
_LONGER: Final = pytest.mark.everything("more of the same dice")
SEEDS: Final = [0, *(pytest.param(seed, marks=_LONGER) for seed in range(1, 6))]
_CLIENTS: Final = [ClientInfo("fuzz", principal=f"User:{name}") for name in ("ann", "bob", "root")]
_TEXTS: Final = [
    "",
    "t",
    "u",
    "consumers",
    "classic",
    "tx",
    "no such",
    "*",
    "t.*",
    "[",
    "uniform",
    "range",
    "consumer",
    "1",
    "-1",
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "SCRAM-SHA-256",
    "PLAIN",
    "User:ANONYMOUS",
    "segment.bytes",
    "consumer.session.timeout.ms",
    "x" * 300,
    "x" * 32_767,
    "\0",
]


class Client:
    """A sink that writes every reply to bytes and tells what it was."""

    def __init__(self, driver: CoreDriver) -> None:
        self.driver = driver
        self.number = driver.connect(self)
        self.is_open = True
        self.reply: Any = None

    def replied(self, reply: Reply | NoReply) -> None:
        if isinstance(reply, Reply):
            api = APIS[reply.api_key]
            write_response(reply.response, api, reply.version, reply.correlation)
            self.reply = reply.response

    def torn(self, torn: TornReply) -> None:
        raise AssertionError(torn)

    def closed(self, why: str) -> None:
        assert "failed on a request" not in why, why
        self.is_open = False


def clients(driver: CoreDriver) -> Any:
    """The client for the next request, again and again: now and then a new one."""
    client = Client(driver)
    served = 0
    while True:
        served += 1
        if not client.is_open or served % 50 == 0:
            driver.disconnect(client.number)
            client = Client(driver)
        yield client


def rights(rng: random.Random) -> SecurityOptions:
    """About half of what there is to be allowed, and something denied."""
    kinds = {
        "TOPIC": ("t", "u", "no such", "*"),
        "GROUP": ("consumers", "classic", "*"),
        "TRANSACTIONAL_ID": ("tx", "1"),
        "CLUSTER": ("kafka-cluster",),
    }
    operations = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS")
    rows = [
        {
            "principal": rng.choice(("User:ann", "User:bob", "User:*")),
            "operation": rng.choice(operations),
            "resource_type": kind,
            "name": rng.choice(kinds[kind]),
            "permission": rng.choice(("ALLOW", "ALLOW", "ALLOW", "DENY")),
        }
        for kind in rng.choices([*kinds], k=60)
    ]
    return SecurityOptions(acls=acls_from_data(rows), super_users=("User:root",))


@pytest.mark.parametrize("guarded", [False, True], ids=["open", "guarded"])
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_valid_request_brings_the_broker_down(
    seed: int, profile: str, *, guarded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    rng = random.Random(f"core-fuzz-{seed}-{profile}-{guarded}")
    clock = VirtualClock()
    broker = MockBroker(
        {"t": 3, "u": 1},
        profile=profile,
        clock=clock,
        listen=False,
        check_ownership=False,
        security=rights(rng) if guarded else None,
    )
    batch = encode_batch([NewRecord(b"k", b"v")], 0)
    ids = [bytes(16), bytes(15) + b"\1", b"\xff" * 16]
    ids += [bytes(topic.topic_id) for topic in broker.core.broker.catalog.topics.values()]
    source = SharpMessages(rng, [*_TEXTS], ids, [b"", b"\0\0", batch, batch[:-1], batch * 2])
    driver = broker.driver
    everyone = clients(driver)
    for number in range(REQUESTS):
        key = rng.choice(sorted(driver.core.api_versions))
        api = APIS[key]
        low, high = driver.core.api_versions[key]
        version = rng.randint(max(low, api.versions[0]), high)  # it claims Produce 0 as Kafka does
        request = source.message(api.request, version)
        frame = write_request(request, version, number, "fuzz")
        client = next(everyone)
        client.reply = None
        try:
            driver.submit(read_received(client.number, rng.choice(_CLIENTS), frame[4:]))
        except WireError:
            client.is_open = False  # of an ACL: brokers read its types while they read the frame
        failed = [record for record in caplog.records if record.exc_info]
        assert not failed, f"{failed[0].exc_text} on v{version} {request!r}"[:5000]
        if client.reply is not None:
            source.learn(client.reply)
        if rng.random() < 0.05:
            clock.advance(rng.choice((1, 1000, 10_000, 400_000)))
            driver.submit(TimerFired())
    well = broker.connect(principal="User:root").ask(MetadataRequest(topics=None))
    assert well.brokers
    broker.close()
