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
from kip848_client.errors import LocalProtocolError

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


def test_what_others_have_put_in_our_place_stays_theirs(caplog: pytest.LogCaptureFixture) -> None:
    class Others(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
        """As a test or an instrumentation puts it there."""

    installed = install()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiokafka, "AIOKafkaConsumer", Others)
        installed.undo()
        assert aiokafka.AIOKafkaConsumer is Others
        assert aiokafka.consumer.AIOKafkaConsumer is THEIRS[0]
        assert "aiokafka.AIOKafkaConsumer" in caplog.text
    assert aiokafka.AIOKafkaConsumer is OURS[0], "they put back what they found"
    with install():
        assert named() == (OURS, OURS)
    assert named() == (THEIRS, THEIRS)


def test_what_is_undone_is_not_entered_again() -> None:
    installed = install()
    installed.undo()
    with pytest.raises(LocalProtocolError, match="install"), installed:
        pass
    assert named() == (THEIRS, THEIRS)


def test_whoever_installs_where_somebody_else_did_puts_that_back() -> None:
    class Others(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
        """A stand-in of a test."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiokafka, "AIOKafkaConsumer", Others)
        with install():
            assert named() == (OURS, OURS)
        assert aiokafka.AIOKafkaConsumer is Others
