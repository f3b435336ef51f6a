"""Frames of slurmctld's plug-in that the agent does not understand: kept, answered, told; and all behind them goes on."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from fairbank.agent.protocol.codec import UnreadableFrame, salvage
from fairbank.agent.protocol.messages import Ack, Verdict
from fairbank.agent.quarantine import BYTES_MAX, FRAMES_MAX, QuarantineFile
from fairbank.core.errors import InvalidInput
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends, limits
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.plugin_codec import encode_plugin_message

WHY = InvalidInput("'x' is not known here", field="key")


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def strange(said: bytes, *, before: bytes = b"uid=", after: bytes = b"uix=") -> bytes:
    """A whole frame with something in it that nobody knows."""
    assert before in said
    return frame(said[4:].replace(before, after))


def unread(number: int = 1, body: bytes = b"") -> UnreadableFrame:
    return UnreadableFrame(
        number=number, kind="epilog", partition="", batch=False, body=body, why=WHY
    )


# ------------------------------------------------------------------ what is known of them


def test_kind_number_partition_and_batch_are_salvaged() -> None:
    found = salvage(
        encode_plugin_message(asks(7, number=12, partition="gpu"))[4:] + b"shape=round\n", WHY
    )
    assert found is not None
    assert (found.number, found.kind, found.partition, found.batch) == (12, "prolog", "gpu", True)
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
def test_without_a_number_there_is_nothing_to_answer(body: bytes) -> None:
    assert salvage(body, WHY) is None


# ------------------------------------------------------------------ the file


def test_the_file_is_taken_up_by_the_next_agent_and_may_be_moved_away(tmp_path: Path) -> None:
    first = QuarantineFile(tmp_path / "aside")
    assert (first.frames, first.last) == (0, None)
    first.append([unread(1, b"\xffa"), unread(2)], 0)
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
    second.append([unread(3)], 0)
    assert second.frames == 1


def test_the_file_is_bounded(tmp_path: Path) -> None:
    many = QuarantineFile(tmp_path / "many")
    many.append([unread(number) for number in range(FRAMES_MAX + 5)], 0)
    many.append([unread()], 0)
    assert many.frames == FRAMES_MAX
    large = QuarantineFile(tmp_path / "large")
    for _ in range(8):
        large.append([unread(body=b"x" * 16_000)] * 50, 0)
    assert (tmp_path / "large").stat().st_size <= BYTES_MAX


def test_what_stands_there_in_its_stead_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "aside").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        QuarantineFile(tmp_path / "aside").append([unread()], 0)
    (tmp_path / "damaged").write_bytes(b"\xff\n")
    assert QuarantineFile(tmp_path / "damaged").frames == 1


# ------------------------------------------------------------------ a running agent


@pytest.mark.slow
def test_a_plugin_of_another_release_is_answered_and_what_comes_behind_is_heard(
    centre: Centre,
) -> None:
    centre.project(ACCOUNT, 1_000 * SU)
    with (
        agent_at(centre.address, tables='[partitions.debug]\noutage_policy = "open"\n') as agent,
        Plugin(agent.socket) as plugin,
    ):
        plugin.send_raw(
            strange(encode_plugin_message(asks(1, number=101)))
            + strange(encode_plugin_message(asks(2, number=102, partition="debug")))
            + strange(encode_plugin_message(limits(2, 600, number=103)))
            + strange(encode_plugin_message(ends(2, number=104)), before=b"end=", after=b"fin=")
            + frame(b"prelude\nnumber=105\n")
            + encode_plugin_message(asks(3, number=106))
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
        assert plugin.met == 1  # nobody hung up
        told_of(agent)
    assert [each["job_id"] for each in centre.jobs()] == [3]  # nothing was guessed at


def told_of(agent: RunningAgent) -> None:
    """In the log once each, in the status, in the metrics, in the file; and over when that is moved away."""
    file = agent.outbox.with_suffix(".quarantine")
    wait_until(lambda: agent.status()["quarantine"]["frames"] == 5, "all frames to be in the file")
    assert [json.loads(line)["number"] for line in file.read_bytes().splitlines()] == [
        101,
        102,
        103,
        104,
        105,
    ]
    assert agent.said().count("a frame is not understood: prolog") == 1
    assert "fairbank reconcile --fix charges what is missing" in agent.said()
    shown = agent.command("agent", "status")
    assert shown.returncode == 8
    assert "5 frames of slurmctld's plug-in were not understood, the last: other: " in shown.stdout
    file.rename(file.with_suffix(".seen"))
    assert agent.command("agent", "status").returncode == 0


@pytest.mark.slow
def test_what_cannot_be_put_aside_is_not_acknowledged_until_it_can(centre: Centre) -> None:
    with agent_at(centre.address) as agent, Plugin(agent.socket) as plugin:
        file = agent.outbox.with_suffix(".quarantine")
        file.mkdir()
        plugin.send_raw(strange(encode_plugin_message(ends(1, number=7))))
        wait_until(lambda: f"{file} cannot be written" in agent.said(), "a line in the log")
        assert plugin.hear()
        assert 7 not in plugin.answers
        assert agent.status()["quarantine"]["error"]
        file.rmdir()
        plugin.wait([7])
        assert agent.status()["quarantine"]["error"] is None
