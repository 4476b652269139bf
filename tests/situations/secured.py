"""A broker with an authorizer, ours or Apache Kafka's, and a user from whom rights are taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from mock_coordinator import MockBroker
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.support.plain_message import message
from tests.support.real_kafka import FAST_CONFIGS
from tests.support.secure_kafka import start_secure_kafka
from tests.support.security.principals import Right
from tests.support.wire_connection import WireConnection

__all__ = ["Secured", "secured"]

_HOST: Final = "127.0.0.1"
_USER: Final = "alice"
_PASSWORD: Final = "secret"


class Secured:
    """``bootstrap`` is where the administrator may do everything; ``login`` are the settings of a
    user who may do everything but what is denied."""

    def __init__(self, admin_port: int, user_port: int) -> None:
        self.bootstrap = f"{_HOST}:{admin_port}"
        self.login: dict[str, Any] = {
            "bootstrap_servers": f"{_HOST}:{user_port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": _USER,
            "sasl_plain_password": _PASSWORD,
        }
        self._port = admin_port

    async def allow_all(self) -> None:
        """Of topics and groups."""
        rights = (Right(kind, "ALL", "*", prefixed=False) for kind in ("TOPIC", "GROUP"))
        await self._create(*rights)

    async def deny(self, resource: str, operation: str, name: str) -> None:
        """Take a right away from the user."""
        await self._create(Right(resource, operation, name, prefixed=False, deny=True))

    async def give_back(self, resource: str, operation: str, name: str) -> None:
        """Undo ``deny``."""
        acl = Right(resource, operation, name, prefixed=False, deny=True).acl(_PRINCIPAL)
        filters = {
            "resource_type_filter": acl["resource_type"],
            "resource_name_filter": name,
            "principal_filter": _PRINCIPAL,
            "host_filter": None,
            "operation": acl["operation"],
            "permission_type": acl["permission_type"],
        }
        answer = await self._ask(message("DeleteAcls", filters=[filters]))
        assert len(answer.filter_results[0].matching_acls) == 1, answer

    async def _create(self, *rights: Right) -> None:
        creations = [right.acl(_PRINCIPAL) for right in rights]
        answer = await self._ask(message("CreateAcls", creations=creations))
        assert not any(each.error_code for each in answer.results), answer

    async def _ask(self, request: Any) -> Any:
        def ask() -> Any:
            with WireConnection(_HOST, self._port) as connection:
                return connection.request(request, 3)

        return await asyncio.to_thread(ask)


_PRINCIPAL: Final = f"User:{_USER}"


@asynccontextmanager
async def secured(server: str) -> AsyncGenerator[Secured]:
    """``server`` is ``mock`` or a release. Raises what ``start_secure_kafka`` does."""
    users = {_USER: _PASSWORD}
    if server == "mock":
        listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT")
        options = SecurityOptions(
            users=users, authorizer=True, super_users=("User:ANONYMOUS",), listeners=(listener,)
        )
        async with MockBroker(security=options, config=FAST_CONFIGS) as broker:
            port = int(broker.bootstrap_of("SASL").rpartition(":")[2])
            found = Secured(broker.port, port)
            await found.allow_all()
            yield found
        return
    manager = start_secure_kafka(server, users, configs=FAST_CONFIGS)
    secure = await asyncio.to_thread(manager.__enter__)
    try:
        found = Secured(secure.ports["PLAINTEXT"], secure.ports["SASL"])
        await found.allow_all()
        yield found
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)
