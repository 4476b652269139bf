"""A pipeline's folders of an earlier state of the repository are read by today's, without Spark."""

from __future__ import annotations

from typing import Final

from kip848_client.core.types import TopicPartition
from kip848_client.spark.pipeline._batches import NOTE, BatchNote
from kip848_client.spark.pipeline._checkpoint import look_into, planned
from kip848_client.spark.pipeline._files import LocalFiles
from kip848_client.spark.pipeline.core._guard import BINDING, Binding, Checkpoint, check
from kip848_client.spark.source.core._manifest import Manifest
from tests.support.stored import FIXTURES, data_folder
from tests.support.stored import spark_folders as stored

FOLDER: Final = FIXTURES / stored.FOLDER
CHECKPOINT: Final = str(FOLDER / stored.CHECKPOINT)
OUTPUT: Final = str(FOLDER / stored.OUTPUT)
FILES: Final = LocalFiles()
RANGES: Final = {0: (0, 3), 1: (0, 1)}
TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"


def test_the_checkpoint_says_what_was_read() -> None:
    manifest = planned(FILES, CHECKPOINT, 0)
    ranges = {TopicPartition(data_folder.TOPIC, number): span for number, span in RANGES.items()}
    assert manifest == Manifest(1, ranges, {data_folder.TOPIC: TOPIC_ID}, "shared", version=1)


def test_output_and_checkpoint_belong_together() -> None:
    found = look_into(FILES, CHECKPOINT)
    text = FILES.read(f"{OUTPUT}/{BINDING}") or ""
    binding = Binding.of(text, OUTPUT)
    assert binding.to_json() == text
    assert found == Checkpoint(CHECKPOINT, binding.checkpoint, 0, 0)
    wanted = Binding(binding.checkpoint, stored.GROUP, "shared", {})
    check(OUTPUT, FILES.names(OUTPUT), binding, found, wanted)


def test_the_output_says_what_it_has() -> None:
    text = FILES.read(f"{OUTPUT}/batch_id=0/{NOTE}") or ""
    note = BatchNote.of(text, OUTPUT)
    assert note.to_json() == text
    assert note.rows == sum(map(len, data_folder.PRODUCED.values()))
    assert note.ranges == {data_folder.TOPIC: {str(p): span for p, span in RANGES.items()}}
    assert note.topics == {data_folder.TOPIC: TOPIC_ID}
