"""Today's clients on listeners with SASL and TLS, and what they make of missing rights."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trustme
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    TopicAuthorizationFailedError,
)
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as ConfluentProducer

from kip848_client import Consumer
from mock_coordinator import MockBroker
from mock_coordinator.core.security.acls import acls_from_data
from mock_coordinator.security import ListenerOptions, SecurityOptions

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio]

# kafka-python 3 reads its schemas with a function that Python 3.11 deprecates and 3.13 keeps
tolerant = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_USER, _PASSWORD = "alice", "an apple, a day"
_DN = "User:CN=carol,OU=clients,O=tests"
_ACLS = [
    {"principal": who, "operation": operation, "resource_type": kind, "name": name}
    for who in ("User:alice", _DN)
    for operation, kind, name in (
        ("READ", "TOPIC", "t"),
        ("WRITE", "TOPIC", "t"),
        ("READ", "GROUP", "g"),
        ("IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"),
        ("WRITE", "TRANSACTIONAL_ID", "tx"),
    )
]


class Certificates:
    """An authority, a server's certificate and a client's, in files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca = str(folder / "ca.pem")
        authority.cert_pem.write_to_path(self.ca)
        self.server = self._write(authority.issue_cert("localhost", "127.0.0.1"), folder / "s")
        client = authority.issue_cert(
            "carol@clients.test",
            common_name="carol",
            organization_name="tests",
            organization_unit_name="clients",
        )
        self.client = self._write(client, folder / "c")

    @staticmethod
    def _write(certificate: trustme.LeafCert, stem: Path) -> tuple[str, str]:
        chain, key = f"{stem}.pem", f"{stem}.key"
        certificate.private_key_pem.write_to_path(key)
        certificate.cert_chain_pems[0].write_to_path(chain)
        return chain, key

    def context(self, *, with_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if with_client:
            context.load_cert_chain(*self.client)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def secured(certificates: Certificates) -> AsyncGenerator[MockBroker]:
    """A broker with every kind of listener, where alice and carol may use topic t and group g."""
    chain, key = certificates.server
    tls: dict[str, Any] = {"certificate": chain, "key": key}
    listeners = (
        ListenerOptions(name="SASL_PLAINTEXT", protocol="SASL_PLAINTEXT"),
        ListenerOptions(name="SASL_SSL", protocol="SASL_SSL", **tls),
        ListenerOptions(
            name="SSL",
            protocol="SSL",
            client_ca=certificates.ca,
            client_auth="required",
            **tls,
        ),
    )
    options = SecurityOptions(
        users={_USER: _PASSWORD, "mallory": "m"},
        acls=acls_from_data(_ACLS),
        super_users=("User:ANONYMOUS",),
        listeners=listeners,
    )
    async with MockBroker({"t": 2, "other": 1}, security=options) as broker:
        yield broker


WAYS = (
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SSL", ""),
)
"""(security protocol, SASL mechanism)."""


def aiokafka_options(
    broker: MockBroker, certificates: Certificates, way: tuple[str, str]
) -> dict[str, Any]:
    protocol, mechanism = way
    options: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_of(protocol),
        "security_protocol": protocol,
    }
    if mechanism:
        options |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": _USER,
            "sasl_plain_password": _PASSWORD,
        }
    if protocol.endswith("SSL"):
        options["ssl_context"] = certificates.context(with_client=protocol == "SSL")
    return options


def librdkafka_options(
    broker: MockBroker, certificates: Certificates, way: tuple[str, str]
) -> dict[str, Any]:
    protocol, mechanism = way
    options: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap_of(protocol),
        "security.protocol": protocol,
    }
    if mechanism:
        options |= {
            "sasl.mechanism": mechanism,
            "sasl.username": _USER,
            "sasl.password": _PASSWORD,
        }
    if protocol.endswith("SSL"):
        options["ssl.ca.location"] = certificates.ca
    if protocol == "SSL":
        chain, key = certificates.client
        options |= {"ssl.certificate.location": chain, "ssl.key.location": key}
    return options


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_aiokafka(certificates: Certificates, way: tuple[str, str]) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, way)
        async with AIOKafkaProducer(**options, enable_idempotence=True) as producer:
            await producer.send_and_wait("t", b"hello", partition=1)
        consumer = AIOKafkaConsumer("t", group_id="g", auto_offset_reset="earliest", **options)
        async with consumer:
            assert (await consumer.getone()).value == b"hello"
            await consumer.commit()


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_our_consumer(certificates: Certificates, way: tuple[str, str]) -> None:
    async with secured(certificates) as broker:
        broker.produce("t", b"hello")
        options = aiokafka_options(broker, certificates, way)
        consumer = Consumer("t", group_id="g", auto_offset_reset="earliest", **options)
        async with consumer:
            assert (await consumer.getone()).value == b"hello"
            await consumer.commit()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_librdkafka(certificates: Certificates, way: tuple[str, str], protocol: str) -> None:
    async with secured(certificates) as broker:
        options = librdkafka_options(broker, certificates, way)

        def work() -> bytes | None:
            producer = ConfluentProducer({**options, "enable.idempotence": True})
            producer.produce("t", b"hello", partition=1)
            assert producer.flush(15) == 0
            group = {
                "group.id": "g",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
            consumer = ConfluentConsumer({**options, **group})
            consumer.subscribe(["t"])
            try:
                found = consumer.poll(20)
                assert found is not None
                assert found.error() is None, found.error()
                consumer.commit(asynchronous=False)
                value: bytes | None = found.value()
                return value  # the name is what types it
            finally:
                consumer.close()

        assert await anyio.to_thread.run_sync(work) == b"hello"


@tolerant
@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_kafka_python(certificates: Certificates, way: tuple[str, str]) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, way)

        def work() -> bytes | None:
            import kafka

            producer = kafka.KafkaProducer(**options)
            producer.send("t", b"hello", partition=1).get(15)
            producer.close()
            consumer = kafka.KafkaConsumer(
                "t", group_id="g", auto_offset_reset="earliest", **options
            )
            try:
                for record in consumer:
                    consumer.commit()
                    value: bytes | None = record.value
                    return value
            finally:
                consumer.close()
            return None

        assert await anyio.to_thread.run_sync(work) == b"hello"


async def test_a_wrong_password_is_told(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with secured(certificates) as broker:
        way = ("SASL_PLAINTEXT", "SCRAM-SHA-256")
        options = aiokafka_options(broker, certificates, way)
        options["sasl_plain_password"] = "wrong"
        await _cannot_start(AIOKafkaProducer(**options))
    assert "SaslAuthenticationFailed: Authentication failed during" in caplog.text


async def _cannot_start(producer: AIOKafkaProducer) -> None:
    try:
        with pytest.raises(KafkaConnectionError):
            await producer.start()
    finally:
        await producer.stop()


def _librdkafka_error(options: dict[str, Any]) -> Callable[[], KafkaError | None]:
    def work() -> KafkaError | None:
        told: list[KafkaError] = []
        consumer = ConfluentConsumer({**options, "group.id": "g", "error_cb": told.append})
        try:
            consumer.list_topics(timeout=3)
        except KafkaException:
            consumer.poll(0.1)
        finally:
            consumer.close()
        wanted = [each for each in told if each.code() == KafkaError._AUTHENTICATION]
        return wanted[0] if wanted else None

    return work


async def test_librdkafka_is_told_of_a_wrong_password(certificates: Certificates) -> None:
    async with secured(certificates) as broker:
        options = librdkafka_options(broker, certificates, ("SASL_PLAINTEXT", "PLAIN"))
        options["sasl.password"] = "wrong"
        error = await anyio.to_thread.run_sync(_librdkafka_error(options))
        assert error is not None
        assert "Invalid username or password" in error.str()


async def test_a_client_without_a_certificate_is_sent_away(certificates: Certificates) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SSL", ""))
        options["ssl_context"] = certificates.context()
        await _cannot_start(AIOKafkaProducer(**options))


async def test_missing_rights_are_errors_of_their_own(certificates: Certificates) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, ("SASL_PLAINTEXT", "PLAIN"))
        async with AIOKafkaProducer(**options) as producer:
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.send_and_wait("other", b"secret")
        options |= {"sasl_plain_username": "mallory", "sasl_plain_password": "m"}
        consumer = AIOKafkaConsumer("t", group_id="g", **options)
        try:
            with pytest.raises((GroupAuthorizationFailedError, TopicAuthorizationFailedError)):
                await _read(consumer)
        finally:
            await consumer.stop()


async def _read(consumer: AIOKafkaConsumer) -> None:
    await consumer.start()
    await consumer.getone()
