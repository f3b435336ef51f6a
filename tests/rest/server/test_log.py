"""What the server's log looks like, and for whom."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from fairbank.rest.server.log import log_to
from fairbank.service.settings import Log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root() -> Iterator[None]:
    """The root logger as it was."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], level = before
    root.setLevel(level)


def lines(stream: io.StringIO, form: Log) -> list[str]:
    log_to(stream, form)
    log = logging.getLogger("fairbank.test")
    log.info("GET /alloc", extra={"facts": {"status": 200}})
    log.warning("the disk is \x1b[31mfull")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(("stream", "form"), [(io.StringIO(), Log.AUTO), (io.StringIO(), Log.JSON), (Terminal(), Log.JSON)])
def test_programs_read_json(stream: io.StringIO, form: Log) -> None:
    assert [json.loads(line)["level"] for line in lines(stream, form)] == ["info", "warning"]


def test_on_a_terminal_only_warnings_are_told_and_in_short() -> None:
    (line,) = lines(Terminal(), Log.AUTO)
    assert line[8:] == " WARNING the disk is \\x1b[31mfull"


def test_short_lines_may_be_had_of_everything() -> None:
    assert [line[8:] for line in lines(io.StringIO(), Log.SHORT)] == [" INFO GET /alloc", " WARNING the disk is \\x1b[31mfull"]
