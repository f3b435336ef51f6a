"""Frames that the agent cannot decode: stored in a file, answered and shown in the status; later
frames are read.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from fairbank.agent.protocol import Ack, UnreadableFrame, Verdict, salvage
from fairbank.agent.quarantine import BYTES_MAX, FRAMES_MAX, QuarantineFile
from fairbank.core.errors import InvalidInput
from fairbank.wlm.controller.plugin_codec import encode_plugin_message
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, Plugin, epilog_event, limit_event, prolog_request
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until

WHY = InvalidInput("'x' is not known here", field="key")


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def with_unknown_key(data: bytes, *, before: bytes = b"uid=", after: bytes = b"uix=") -> bytes:
    """Return the frame with a key that the agent does not know."""
    assert before in data
    return frame(data[4:].replace(before, after))


def unreadable_frame(number: int = 1, body: bytes = b"") -> UnreadableFrame:
    return UnreadableFrame(
        number=number, kind="epilog", partition="", batch=False, body=body, why=WHY
    )


# ------------------------------------------------------------------ readable parts


def test_salvage_reads_kind_number_partition_and_batch() -> None:
    salvaged = salvage(
        encode_plugin_message(prolog_request(7, number=12, partition="gpu"))[4:] + b"shape=round\n",
        WHY,
    )
    assert salvaged is not None
    assert (salvaged.number, salvaged.kind, salvaged.partition, salvaged.batch) == (
        12,
        "prolog",
        "gpu",
        True,
    )
    odd = salvage(b"prelude\nnumber=3\n\xff\nbatch=yes\npartition=a\npartition=b\n", WHY)
    assert odd is not None
    assert (odd.number, odd.kind, odd.partition, odd.batch) == (3, "other", "", False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"epilog\n",
        b"epilog\nnumber=1\nnumber=2\n",
        b"epilog\nnumber=-1\n",
        b"epilog\nnumber=01\n",
        b"hello\nnumber=1\n",
    ],
)
def test_salvage_needs_a_number(body: bytes) -> None:
    assert salvage(body, WHY) is None


# ------------------------------------------------------------------ the file


def test_file_is_continued_and_can_be_moved_away(tmp_path: Path) -> None:
    first = QuarantineFile(tmp_path / "aside")
    assert (first.frames, first.last) == (0, None)
    first.append([unreadable_frame(1, b"\xffa"), unreadable_frame(2)], 0)
    line = json.loads((tmp_path / "aside").read_bytes().splitlines()[0])
    assert (line["at"], line["number"], b64decode(line["body"])) == (
        "1970-01-01T00:00:00Z",
        1,
        b"\xffa",
    )
    assert (tmp_path / "aside").stat().st_mode & 0o777 == 0o600
    second = QuarantineFile(tmp_path / "aside")
    assert (second.frames, second.last) == (2, "epilog: 'x' is not known here (key)")
    (tmp_path / "aside").rename(tmp_path / "looked-at")
    assert second.frames == 0
    second.append([unreadable_frame(3)], 0)
    assert second.frames == 1


def test_file_is_limited(tmp_path: Path) -> None:
    many = QuarantineFile(tmp_path / "many")
    many.append([unreadable_frame(number) for number in range(FRAMES_MAX + 5)], 0)
    many.append([unreadable_frame()], 0)
    assert many.frames == FRAMES_MAX
    large = QuarantineFile(tmp_path / "large")
    for _ in range(8):
        large.append([unreadable_frame(body=b"x" * 16_000)] * 50, 0)
    assert (tmp_path / "large").stat().st_size <= BYTES_MAX


def test_other_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "aside").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        QuarantineFile(tmp_path / "aside").append([unreadable_frame()], 0)
    (tmp_path / "damaged").write_bytes(b"\xff\n")
    assert QuarantineFile(tmp_path / "damaged").frames == 1


# ------------------------------------------------------------------ a running agent


@pytest.mark.slow
def test_unreadable_frames_are_answered_and_later_ones_read(site: Site) -> None:
    site.project(ACCOUNT, 1_000 * SU)
    with (
        agent_at(site.address, tables='[partitions.debug]\noutage_policy = "open"\n') as agent,
        Plugin(agent.socket) as plugin,
    ):
        plugin.send_raw(
            with_unknown_key(encode_plugin_message(prolog_request(1, number=101)))
            + with_unknown_key(
                encode_plugin_message(prolog_request(2, number=102, partition="debug"))
            )
            + with_unknown_key(encode_plugin_message(limit_event(2, 600, number=103)))
            + with_unknown_key(
                encode_plugin_message(epilog_event(2, number=104)), before=b"end=", after=b"fin="
            )
            + frame(b"prelude\nnumber=105\n")
            + encode_plugin_message(prolog_request(3, number=106))
        )
        closed, opened, *noted, last = plugin.wait(range(101, 107))
        assert isinstance(closed, Verdict)
        assert (closed.action, closed.reason) == ("hold", "Fairbank_does_not_answer")
        assert "do not understand each other" in closed.text
        assert isinstance(opened, Verdict)
        assert opened.action == "run"
        assert noted == [Ack(number=103), Ack(number=104), Ack(number=105)]
        assert isinstance(last, Verdict)
        assert last.action == "run"
        assert plugin.connections == 1  # the connection stayed open
        assert_reported(agent)
    assert [job["job_id"] for job in site.jobs()] == [3]  # only the readable job


def assert_reported(agent: RunningAgent) -> None:
    """Assert that log, status, metrics and file have the frames, until the file is moved away."""
    file = agent.outbox.with_suffix(".quarantine")
    wait_until(lambda: agent.status()["quarantine"]["frames"] == 5, "all frames to be in the file")
    assert [json.loads(line)["number"] for line in file.read_bytes().splitlines()] == [
        101,
        102,
        103,
        104,
        105,
    ]
    assert agent.log_text().count("a frame is not understood: prolog") == 1
    assert "fairbank reconcile --fix charges what is missing" in agent.log_text()
    shown = agent.command("agent", "status")
    assert shown.returncode == 8
    assert "5 frames of slurmctld's plug-in cannot be read, the last: other: " in shown.stdout
    file.rename(file.with_suffix(".seen"))
    assert agent.command("agent", "status").returncode == 0


@pytest.mark.slow
def test_frame_is_acknowledged_only_after_it_is_in_the_file(site: Site) -> None:
    with agent_at(site.address) as agent, Plugin(agent.socket) as plugin:
        file = agent.outbox.with_suffix(".quarantine")
        file.mkdir()
        plugin.send_raw(with_unknown_key(encode_plugin_message(epilog_event(1, number=7))))
        wait_until(lambda: f"{file} cannot be written" in agent.log_text(), "a line in the log")
        assert plugin.receive()
        assert 7 not in plugin.answers
        assert agent.status()["quarantine"]["error"] == f"[Errno 21] Is a directory: '{file}'"
        file.rmdir()
        plugin.wait([7])
        assert agent.status()["quarantine"]["error"] is None
