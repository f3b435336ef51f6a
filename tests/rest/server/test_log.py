"""Log formats of the server."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.rest.server.log import log_to, set_debug_level, set_debug_levels
from fairbank.service.settings import LogFormat
from tests.rest.server.log_lines import logged
from tests.rest.world import AGENT, MEMBER, SUPERUSER, World, report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root() -> Iterator[None]:
    """Restore the root logger after each test."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], level = before
    root.setLevel(level)


def lines(stream: io.StringIO, form: LogFormat) -> list[str]:
    log_to(stream, form)
    log = logging.getLogger("fairbank.test")
    log.info("GET /alloc", extra={"facts": {"status": 200}})
    log.warning("the disk is \x1b[31mfull")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("stream", "form"),
    [
        (io.StringIO(), LogFormat.AUTO),
        (io.StringIO(), LogFormat.JSON),
        (Terminal(), LogFormat.JSON),
    ],
)
def test_log_is_json_by_default(stream: io.StringIO, form: LogFormat) -> None:
    assert [json.loads(line)["level"] for line in lines(stream, form)] == ["info", "warning"]


def test_terminal_gets_only_warnings_in_short_lines() -> None:
    (line,) = lines(Terminal(), LogFormat.AUTO)
    assert line[8:] == " WARNING the disk is \\x1b[31mfull"


def test_short_lines_can_be_selected() -> None:
    assert [line[8:] for line in lines(io.StringIO(), LogFormat.SHORT)] == [
        " INFO GET /alloc",
        " WARNING the disk is \\x1b[31mfull",
    ]


def test_every_request_but_reports_is_logged(world: World) -> None:
    with logged() as lines:
        world.ask("GET", "/alloc", SUPERUSER, as_=MEMBER)
        world.ask("POST", "/job", AGENT, json=report(1))
        world.ask("POST", "/job", AGENT, json=report(2, amount=10**12))
    requests = [line for line in lines if line["from"] == "fairbank.request"]
    assert [
        (request["method"], request["path"], request["status"], request["uid"])
        for request in requests
    ] == [("GET", "/alloc", 200, SUPERUSER), ("POST", "/job", 402, AGENT)]
    assert requests[0]["acting_as"] == MEMBER


def test_client_text_creates_no_second_line(world: World) -> None:
    with logged() as lines:
        world.ask("GET", "/alloc%0a%7b%22level%22:%22error%22%7d%0d\u2028%7f", MEMBER)
    assert len(lines) == 1
    assert lines[0]["status"] == 404


def test_tokens_are_not_logged(world: World) -> None:
    secret = world.token(MEMBER, "read")
    with logged() as lines:
        world.ask("GET", "/alloc", token=secret)
        world.ask("GET", f"/alloc?token={secret}", MEMBER)
    assert secret not in json.dumps(lines)


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("quiet", []),
        ("fatal", ["critical"]),
        ("error", ["critical", "error"]),
        ("info", ["critical", "error", "warning", "info"]),
        ("verbose", ["critical", "error", "warning", "info"]),
        ("debug3", ["critical", "error", "warning", "info", "debug"]),
    ],
)
def test_debug_level_selects_the_lines_of_the_log(level: str, shown: list[str]) -> None:
    stream = io.StringIO()
    log_to(stream)
    set_debug_levels(level, "quiet", daemon="slurmd")
    log_at_all_levels()
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == shown
    set_debug_level("error")
    log_at_all_levels()
    assert len(stream.getvalue().splitlines()) == len(shown) + 2


def test_syslog_gets_each_severity_in_one_line(tmp_path: Path) -> None:
    path, stream = str(tmp_path / "log"), io.StringIO()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(path)
        syslog.settimeout(5)
        log_to(stream)
        set_debug_levels("quiet", "debug", daemon="slurmctld", address=path)
        log_at_all_levels()
        try:
            raise ValueError("no\nroom")
        except ValueError:
            logging.getLogger("fairbank.test").exception("a bug")
        set_debug_level("fatal")
        received = [syslog.recv(9_999).rstrip(b"\0").decode() for _ in range(6)]
        set_debug_levels("info", "quiet", daemon="slurmctld", address=path)
    begin = f"slurmctld[{os.getpid()}]: "
    daemon = 3 << 3  # the facility; severities are those of syslog(3)
    assert received == [
        f"<{daemon + severity}>{begin}{text}"
        for severity, text in (
            (2, "line 1"), (3, "line 2"), (4, "line 3"), (6, "line 4"), (7, "line 5"),
            (3, "a bug: room"),
        )
    ]  # fmt: skip
    assert stream.getvalue() == ""


def test_missing_syslog_disturbs_no_daemon(tmp_path: Path) -> None:
    stream = io.StringIO()
    log_to(stream)
    set_debug_levels("error", "info", daemon="slurmd", address=str(tmp_path / "none"))
    log_at_all_levels()
    assert len(stream.getvalue().splitlines()) == 2


def log_at_all_levels() -> None:
    log = logging.getLogger("fairbank.test")
    for number, level in enumerate((50, 40, 30, 20, 10), 1):
        log.log(level, "line %d", number)


def test_line_that_cannot_be_written_is_dropped_without_a_trace(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with open("/dev/full", "w", buffering=1) as full:
        log_to(full, LogFormat.JSON)
        logging.getLogger("fairbank.test").error("the disk is full")
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # so that it can be closed
    assert capfd.readouterr().err == ""
