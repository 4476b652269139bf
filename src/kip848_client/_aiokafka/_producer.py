"""aiokafka's producer, reduced to what the demo needs: a record out, its place in the log back."""

from __future__ import annotations

from types import TracebackType

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from kip848_client.errors import BootstrapFailed, TransportError

__all__ = ["RecordProducer"]


class RecordProducer:
    """Produces with acks=all; use it as ``async with``. Entering raises ``BootstrapFailed``."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: AIOKafkaProducer | None = None

    async def __aenter__(self) -> RecordProducer:
        producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=5)
        try:
            await producer.start()
        except KafkaError as err:
            await producer.stop()
            raise BootstrapFailed(f"cannot produce to {self._bootstrap}: {err}") from err
        self._producer = producer
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def send(self, topic: str, key: bytes, value: bytes) -> tuple[int, int]:
        """Append one record; returns its partition and offset once the broker has it.

        Raises ``TransportError`` when the broker did not take it; it may then be there or not.
        """
        assert self._producer is not None
        try:
            place = await self._producer.send_and_wait(topic, value, key=key)
        except KafkaError as err:
            raise TransportError(f"a record was not acknowledged: {err}") from err
        return place.partition, place.offset
