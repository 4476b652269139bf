"""InitProducerId (key 22): hands out producer ids for idempotent producers.

With a transactional id the answer is UNSUPPORTED_VERSION: transactions are not served, and this is
the one code that every client reports at once instead of retrying until its timeout.
"""

from __future__ import annotations

from kip848_client.wire import ErrorCode
from kip848_client.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from mock_coordinator.core.broker import Broker

__all__ = ["init_producer_id"]


def init_producer_id(broker: Broker, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A producer id that nobody had before, with epoch 0."""
    # an id to continue and its epoch come together or not at all (KIP-360)
    half_given = (request.producer_id == -1) != (request.producer_epoch == -1)
    if request.transactional_id == "" or half_given:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    producer_id = broker.disk.next_producer_id
    broker.disk.next_producer_id += 1
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
