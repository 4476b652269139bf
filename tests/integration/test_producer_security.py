"""The producer on listeners with TLS and SASL: every way in, what it may not do, sessions that
end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import (
    BootstrapFailed,
    BrokerError,
    Consumer,
    Producer,
    ProducerFailed,
    TransactionAborted,
)
from kip848_client.runtime.net import _connection
from mock_coordinator import MockBroker
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.integration.test_foreign_security import (
    WAYS,
    Certificates,
    aiokafka_options,
    certificates,
    secured,
)
from tests.integration.test_sasl_sessions import LIFETIME_MS, LIFETIMES, login, logins
from tests.support.plain_message import message
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import RealKafka
from tests.support.secure_kafka import start_secure_kafka
from tests.support.security.principals import Right
from tests.support.security.scram_users import MECHANISMS, scram_upsertions
from tests.support.security.tls import SUBJECTS
from tests.support.security.tls import Certificates as RealCertificates

__all__ = ["certificates"]

pytestmark = pytest.mark.asyncio

ID: Final = "tx"
WAIT_S: Final = 20.0

Options = Mapping[str, Any]


async def write_and_read(options: Options, topic: str, name: str, group: str = "g") -> None:
    """Alone, and in a transaction together with offsets of a consumer that comes the same way."""
    async with Producer(**options) as producer:
        await producer.send_and_wait(topic, b"alone", partition=0)
    consumer: Consumer[Any, Any] = Consumer(
        topic,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        **options,
    )
    async with (
        asyncio.timeout(WAIT_S),
        consumer,
        Producer(**options, transactional_id=name) as producer,
    ):
        assert (await consumer.getone()).value == b"alone"
        async with producer.transaction() as txn:
            await txn.send(topic, b"together", partition=0)
            await txn.send_offsets(consumer)
        assert await consumer.committed((topic, 0)) == 1
        assert (await consumer.getone()).value == b"together"


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_every_way_in(certificates: Certificates, way: tuple[str, str]) -> None:
    async with secured(certificates) as broker:
        await write_and_read(aiokafka_options(broker, certificates, way), "t", ID)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("transactional_id", [None, ID])
async def test_a_wrong_password_is_told_at_the_start(
    certificates: Certificates, mechanism: str, transactional_id: str | None
) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SASL_PLAINTEXT", mechanism))
        options |= {"sasl_plain_password": "wrong", "transactional_id": transactional_id}
        producer = Producer(**options)
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(BrokerError, match="SASL_AUTHENTICATION_FAILED"):
                await producer.start()


async def test_a_stranger_s_certificate_is_told_at_the_start(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SASL_SSL", "PLAIN"))
        options["ssl_context"] = Certificates(tmp_path).context()
        with pytest.raises(BootstrapFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await Producer(**options).start()


async def test_a_client_without_a_certificate_is_sent_away(certificates: Certificates) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SSL", ""))
        options["ssl_context"] = certificates.context()
        with pytest.raises(BootstrapFailed):
            await Producer(**options, request_timeout_ms=2_000).start()


async def test_what_it_has_no_right_to_is_told_and_the_rest_goes_on(
    certificates: Certificates,
) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SASL_PLAINTEXT", "PLAIN"))
        async with Producer(**options) as producer:
            with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send("other", b"secret")
            assert (await producer.send_and_wait("t", b"0", partition=0)).offset == 0
        with pytest.raises(ProducerFailed, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await Producer(**options, transactional_id="not-alices").start()
        async with Producer(**options, transactional_id=ID) as producer:
            for forbidden in (
                producer.send("other", b"secret"),
                producer.send_offsets_to_transaction({("t", 0): 1}, "not-alices"),
            ):
                await producer.begin_transaction()
                await producer.send("t", b"never", partition=0)
                with pytest.raises((BrokerError, TransactionAborted), match="AUTHORIZATION"):
                    await forbidden
                with pytest.raises(TransactionAborted, match="AUTHORIZATION"):
                    await producer.commit_transaction()
                await producer.abort_transaction()
            async with producer.transaction() as txn:
                await txn.send("t", b"1", partition=0)
        consumer = Consumer[Any, Any](**options, isolation_level="read_committed")
        async with asyncio.timeout(WAIT_S), consumer:
            consumer.assign([("t", 0)])
            await consumer.seek_to_beginning()
            assert [(await consumer.getone()).value for _ in range(2)] == [b"0", b"1"]


async def test_a_right_that_is_taken_away_comes_back(certificates: Certificates) -> None:
    """Metadata was asked for in time: it is the leader that refuses."""
    nobody_writes = Right("TOPIC", "WRITE", "t", prefixed=False, deny=True).acl("User:alice")
    mine_alone = {
        "resource_type_filter": nobody_writes["resource_type"],
        "resource_name_filter": "t",
        "principal_filter": "User:alice",
        "host_filter": None,
        "operation": nobody_writes["operation"],
        "permission_type": nobody_writes["permission_type"],
    }
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SASL_PLAINTEXT", "PLAIN"))
        async with Producer(**options) as producer:
            await producer.send_and_wait("t", b"0", partition=0)
            admin = broker.connect()
            admin.ask(message("CreateAcls", creations=[nobody_writes]), 3)
            with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send_and_wait("t", b"1", partition=0)
            removed = admin.ask(message("DeleteAcls", filters=[mine_alone]), 3)
            assert len(removed.filter_results[0].matching_acls) == 1
            admin.close()
            assert (await producer.send_and_wait("t", b"2", partition=0)).offset == 1


async def write_for(seconds: float, options: Options) -> None:
    """Write while sessions begin and end: alone, and in transactions."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + seconds
    futures: list[asyncio.Future[Any]] = []
    async with (
        Producer(**options, linger_ms=1) as alone,
        Producer(**options, transactional_id=ID) as together,
    ):
        while loop.time() < ends_s:
            for _ in range(20):
                futures.append(await alone.send("t", b"%d" % len(futures), partition=0))
            async with together.transaction() as txn:
                await txn.send("t", b"together", partition=1)
            await asyncio.sleep(0.01)
    assert [each.result().offset for each in futures] == list(range(len(futures)))


@pytest.mark.everything("sessions last for seconds")
async def test_the_ends_of_sasl_sessions_pass_unnoticed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 5 % of so short a lifetime is less than what a busy machine holds an event loop up for
    monkeypatch.setattr(_connection, "_DUE_AFTER", (0.3, 0.4))
    listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT", max_reauth_ms=LIFETIME_MS)
    security = SecurityOptions(users={"scram-sha-256": "secret"}, listeners=(listener,))
    async with MockBroker({"t": 2}, security=security) as broker:
        with caplog.at_level(logging.INFO), caplog.at_level(logging.DEBUG, "kip848_client"):
            await write_for(LIFETIMES * LIFETIME_MS / 1000, login(broker, "SCRAM-SHA-256"))
    # each producer for records and for the rest, and again for each end that fell into the time
    assert logins(caplog) >= 2 * 2 + 4
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []


CAROL: Final = "User:CN=carol,OU=clients,O=tests"
"""The principal of the first of ``SUBJECTS``."""
REAL_SESSIONS_S: Final = 4.5
"""More than twice as long as those of the listener SHORT."""


@pytest.mark.real_kafka
async def test_every_way_into_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    newest = chosen_versions(request.config)[-1]
    user, password = "root", "secret-of-root"
    pem = RealCertificates(tmp_path)
    supers = {"super.users": f"User:ANONYMOUS;User:{user};{CAROL}"}
    tls = {"ssl_context": pem.anonymous()}
    with (
        skip_without_kafka(),
        start_secure_kafka(newest, {user: password}, configs=supers, pem=pem.pem()) as secure,
    ):
        add_scram_user(secure.kafka, user, password)

        def options(listener: str, protocol: str, mechanism: str = "") -> dict[str, Any]:
            address = {
                "bootstrap_servers": f"localhost:{secure.ports[listener]}",
                "security_protocol": protocol,
            }
            if not mechanism:
                return address
            named = {"sasl_plain_username": user, "sasl_plain_password": password}
            return {**address, **named, "sasl_mechanism": mechanism}

        ways: list[dict[str, Any]] = [
            *(options("SASL", "SASL_PLAINTEXT", each) for each in ("PLAIN", *MECHANISMS)),
            *(options("SASLTLS", "SASL_SSL", each) | tls for each in ("PLAIN", *MECHANISMS)),
            options("TLS", "SSL") | tls,
            options("MUTUAL", "SSL") | {"ssl_context": pem.client(0, SUBJECTS[0])},
        ]
        for number, way in enumerate(ways):
            name = f"way-{number}"
            secure.kafka.create_topic(name, 1)
            await write_and_read(way, name, name, group=name)
        secure.kafka.create_topic("t", 2)
        await write_for(REAL_SESSIONS_S, options("SHORT", "SASL_PLAINTEXT", "PLAIN"))


def add_scram_user(kafka: RealKafka, user: str, password: str) -> None:
    for mechanism in MECHANISMS:
        rows = scram_upsertions({user: password}, mechanism)
        altered = message("AlterUserScramCredentials", deletions=(), upsertions=rows)
        with kafka.connect() as admin:
            answer = admin.request(altered, 0)
        assert all(each.error_code == 0 for each in answer.results), answer
