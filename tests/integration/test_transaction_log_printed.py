"""``__transaction_state`` of the bundled broker, printed by Kafka's own console consumer."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from tests.integration.test_data_dir import port_of, running
from tests.support.kafka_tools import CONSOLE_CONSUMER, run_tool
from tests.support.raw_transactions import RawTransactions
from tests.support.wire_connection import WireConnection

FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"


@pytest.mark.real_kafka
@pytest.mark.timeout(120)
def test_kafkas_console_consumer_prints_the_states(tmp_path: Path, kafka_tools_jars: Path) -> None:
    assert kafka_tools_jars.is_dir()
    with running(tmp_path / "data") as process:
        port = port_of(process)
        with closing(RawTransactions(lambda: WireConnection("127.0.0.1", port), {})) as raw:
            _, producer = raw.init("my-id", 30_000)
            assert raw.produce("my-id", producer, 0, {("t", 2): [b"v"]}, 12)[0][2] == 0
            assert raw.end("my-id", producer, commit=True)[0][0] == 0
        printed = run_tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", f"127.0.0.1:{port}", "--topic", TRANSACTIONS_TOPIC),
            *("--partition", str(partition_for("my-id", 50)), "--offset", "earliest"),
            *("--max-messages", "4", "--timeout-ms", "20000", "--formatter", FORMATTER),
        )
    records = printed.split('{"key":')[1:]  # this formatter writes no line ends
    assert all('"transactionalId":"my-id"' in record for record in records)
    statuses = re.findall(r'"transactionStatus":(\d)', printed)
    assert statuses == ["0", "1", "2", "4"]
    assert '"transactionPartitions":[{"topic":"t","partitionIds":[2]}]' in records[1]
    assert '"transactionTimeoutMs":30000' in records[0]
    assert '"clientTransactionVersion":2' in records[3]
