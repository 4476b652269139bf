"""``install``: aiokafka's public names are ours, and aiokafka's again."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap

import aiokafka
import aiokafka.consumer
import aiokafka.producer
import pytest

from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install

THEIRS = (aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer)
OURS = (AIOKafkaConsumer, AIOKafkaProducer)


def named() -> tuple[tuple[type, type], tuple[type, type]]:
    return (
        (aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer),
        (aiokafka.consumer.AIOKafkaConsumer, aiokafka.producer.AIOKafkaProducer),
    )


def test_the_names_are_ours_until_it_is_undone() -> None:
    assert named() == (THEIRS, THEIRS)
    installed = install()
    assert named() == (OURS, OURS)
    installed.undo()
    assert named() == (THEIRS, THEIRS)
    installed.undo()
    assert named() == (THEIRS, THEIRS)


def test_in_a_block_also_when_it_fails() -> None:
    with pytest.raises(AssertionError, match="theirs"), install():
        assert named() == (THEIRS, THEIRS), "these are not theirs"
    assert named() == (THEIRS, THEIRS)


def test_two_installations_in_any_order() -> None:
    first, second = install(), install()
    first.undo()
    assert named() == (OURS, OURS)
    second.undo()
    assert named() == (THEIRS, THEIRS)


def test_who_has_aiokafkas_classes_already_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kip848_client")
    module = type(sys)("imported_early")
    module.__dict__["AIOKafkaConsumer"] = aiokafka.AIOKafkaConsumer
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "imported_early", module)
        with install():
            pass
    assert "imported_early" in caplog.text


def test_a_program_that_names_aiokafka_gets_ours() -> None:
    program = """
        from kip848_client.aiokafka import install
        install()
        import aiokafka
        from aiokafka import AIOKafkaConsumer
        assert AIOKafkaConsumer.__module__ == "kip848_client.aiokafka._consumer"
        class Mine(aiokafka.AIOKafkaProducer): pass
        assert Mine.__mro__[1].__module__ == "kip848_client.aiokafka._producer"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
