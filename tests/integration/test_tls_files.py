"""TLS from PEM files: consumers, producers and admins on listeners that ask for certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import Admin, BootstrapFailed, Consumer, Producer
from tests.integration.test_foreign_security import Certificates, certificates, secured
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.secure_kafka import start_secure_kafka
from tests.support.security.tls import SUBJECTS
from tests.support.security.tls import Certificates as RealCertificates

__all__ = ["certificates"]

pytestmark = pytest.mark.asyncio

WAIT_S: Final = 20.0


async def write_and_read(options: Mapping[str, Any], topic: str, group: str) -> None:
    """By a producer, a consumer and an admin."""
    async with asyncio.timeout(WAIT_S):
        async with Producer(**options) as producer:
            await producer.send_and_wait(topic, b"secret", partition=0)
        consumer: Consumer[Any, Any] = Consumer(
            topic, group_id=group, auto_offset_reset="earliest", **options
        )
        async with consumer:
            assert (await consumer.getone()).value == b"secret"
            await consumer.commit()
        async with Admin(**options) as admin:
            offsets = await admin.list_group_offsets(group)
    assert sum(each.offset for each in offsets.values()) == 1


async def test_files_for_every_client(certificates: Certificates) -> None:
    chain, key = certificates.client
    async with secured(certificates) as broker:
        options = {
            "bootstrap_servers": broker.bootstrap_of("SSL"),
            "security_protocol": "SSL",
            "ssl_cafile": certificates.ca,
            "ssl_certfile": chain,
            "ssl_keyfile": key,
        }
        await write_and_read(options, "t", "g")


async def test_files_of_a_stranger(certificates: Certificates, tmp_path: Path) -> None:
    async with secured(certificates) as broker:
        options: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap_of("SSL"),
            "security_protocol": "SSL",
            "ssl_cafile": Certificates(tmp_path).ca,
        }
        with pytest.raises(BootstrapFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await Producer(**options).start()


async def test_the_name_of_the_host(certificates: Certificates) -> None:
    """The certificate is for localhost and 127.0.0.1."""
    chain, key = certificates.client
    async with secured(certificates) as broker:
        port = broker.bootstrap_of("SSL").rpartition(":")[2]
        options: dict[str, Any] = {
            "bootstrap_servers": f"127.0.0.2:{port}",
            "security_protocol": "SSL",
            "ssl_cafile": certificates.ca,
            "ssl_certfile": chain,
            "ssl_keyfile": key,
        }
        with pytest.raises(BootstrapFailed):
            await Producer(**options).start()


@pytest.mark.real_kafka
async def test_files_for_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    newest = chosen_versions(request.config)[-1]
    pem = RealCertificates(tmp_path)
    pem.client(0, SUBJECTS[0])
    supers = {"super.users": "User:ANONYMOUS;User:CN=carol,OU=clients,O=tests"}
    with (
        skip_without_kafka(),
        start_secure_kafka(newest, {}, configs=supers, pem=pem.pem()) as secure,
    ):
        secure.kafka.create_topic("t", 1)
        options = {
            "bootstrap_servers": f"localhost:{secure.ports['MUTUAL']}",
            "security_protocol": "SSL",
            "ssl_cafile": pem.ca,
            "ssl_certfile": str(tmp_path / "client-0.pem"),
            "ssl_keyfile": tmp_path / "client-0.key",
        }
        await write_and_read(options, "t", "g")
