"""Streams of a step: every byte comes once, in order, to an srun, slow, stopped or new."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fairbank.wlm.client.requests import StepNode
from fairbank.wlm.client.step_stream import INPUT_WINDOW, StepStream
from fairbank.wlm.protocol.frames import (
    BYTE_COUNT,
    CREDIT,
    ERRORS,
    FINISHED,
    INPUT,
    OUTPUT,
    SIGNAL,
    WINDOW_SIZE,
    WRITTEN,
    Frame,
    FrameDecoder,
    encode_frame,
)
from fairbank.wlm.stepd.poller import Poller
from fairbank.wlm.stepd.step import StepTask, read_start
from fairbank.wlm.stepd.stream_log import FREE_PART
from fairbank.wlm.stepd.streams import LAG_MAX, StepStreams, StreamEnds
from tests.support.conditions import wait_until
from tests.support.small_disk import small_disk
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.reader import Reader
from tests.wlm.stepd.steps import StartedLauncher, StartedStep


def streamed(start_step: StartStep, script: str, tasks: int = 1, **options: Any) -> StartedStep:
    """Start a step whose tasks have streams for input, output and errors."""
    ranks = tuple(StepTask(rank) for rank in range(tasks))
    return start_step(script, input="", output="", tasks=ranks, **options)


def numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, count + 1))


def test_tasks_have_streams_and_exit_codes_of_their_own(start_step: StartStep) -> None:
    script = "echo rank $SLURM_PROCID of $SLURM_LOCALID; echo no >&2; exit $SLURM_PROCID"
    step = streamed(start_step, script, tasks=3)
    with Reader(step, credit=2**31) as reader:
        reader.receive_all()
    assert reader.answer == {"ranks": [0, 1, 2], "input": False}
    for rank in range(3):
        assert reader.output[OUTPUT, rank] == f"rank {rank} of {rank}\n".encode()
        assert reader.output[ERRORS, rank] == b"no\n"
    assert reader.exits == {0: 0, 1: 1 << 8, 2: 2 << 8}
    assert reader.ended == {(kind, rank) for kind in (OUTPUT, ERRORS) for rank in range(3)}
    assert step.wait().status == 2 << 8


def test_output_before_the_srun_came_is_not_lost(start_step: StartStep) -> None:
    step = streamed(start_step, "echo early; exit 3")
    assert step.wait().status == 3 << 8
    with Reader(step, credit=100) as reader:
        reader.receive_all()
    assert (reader.output[OUTPUT, 0], reader.exits) == (b"early\n", {0: 3 << 8})


def test_task_does_not_wait_for_an_srun_that_takes_nothing(start_step: StartStep) -> None:
    count = 1_000_000  # 7 MB: more than stays in memory
    step = streamed(start_step, f"seq {count}")
    with Reader(step) as reader:
        assert step.wait().status == 0
        reader.send(CREDIT, 2**31)
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == numbered(count)
    wait_until(lambda: not list(step.directory.glob("stream.*")), "the removal of the files")


def test_connected_srun_gets_everything_although_the_run_is_forgotten(
    start_step: StartStep,
) -> None:
    count = 1_000_000
    step = streamed(start_step, f"seq {count}")
    with Reader(step) as reader:
        assert step.wait().status == 0
        # Only after it has stored the end it answers again.
        step.request({"kind": "state"})
        shutil.rmtree(step.directory)
        reader.send(CREDIT, 2**31)
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == numbered(count)


def test_srun_that_knows_the_end_of_a_silent_step_keeps_no_process(start_step: StartStep) -> None:
    step = streamed(start_step, "exit 3")
    with Reader(step, credit=2**31) as reader:
        while not reader.is_finished:
            assert reader.receive()
        assert step.wait().status == 3 << 8
        wait_until(lambda: not reader.receive(), "the end of the connection")


def test_output_that_no_srun_takes_does_not_fill_the_disk(
    launcher: StartedLauncher, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        script = "head -c 12000000 /dev/zero"
        step = StartedStep(launcher, disk / "step", script, output="", tasks=[StepTask(0)])
        file = step.directory / f"stream.{OUTPUT}.0"
        wait_until(lambda: file.exists() and file.stat().st_size > 6_000_000, "a long file")
        free, size = os.statvfs(disk).f_bavail, os.statvfs(disk).f_blocks
        assert free >= size // FREE_PART
        with Reader(step, credit=2**31) as reader:
            reader.receive_all()
        assert reader.output[OUTPUT, 0] == bytes(12_000_000)


def test_srun_that_comes_after_a_killed_one_gets_the_rest(start_step: StartStep) -> None:
    step = streamed(start_step, "seq 200000; read line; seq 200001 400000")
    with Reader(step, credit=1_000_000) as first:
        while len(first.output[OUTPUT, 0]) < 300_000:
            first.receive()
        before = first.output[OUTPUT, 0]
    with Reader(step, wants_input=True, credit=2**31) as second:
        second.send(INPUT, body=b"go on\n")
        second.receive_all()
    # What the first had written when it ended is not known: it comes again, if at all.
    whole, rest = numbered(400_000), second.output[OUTPUT, 0]
    assert whole.startswith(before)
    assert whole.endswith(rest)
    assert len(before) + len(rest) >= len(whole)


def test_next_srun_gets_what_a_killed_one_has_not_written(start_step: StartStep) -> None:
    step = streamed(start_step, "seq 100000; read line")
    with Reader(step, credit=50_000) as first:
        while len(first.output[OUTPUT, 0]) < 50_000:
            assert first.receive(is_generous=False)
        first.write(OUTPUT, 0, 20_000)
        wait_until(lambda: step.request({"kind": "state"}), "an answer after the credit")
    with Reader(step, credit=2**31, wants_input=True) as second:
        second.send(INPUT)
        second.receive_all()
    assert second.output[OUTPUT, 0] == numbered(100_000)[20_000:]


def test_srun_that_comes_before_the_end_of_a_killed_one_is_seen_gets_the_rest(
    tmp_path: Path,
) -> None:
    """Both are ready at once, and the step daemon accepts the new one first."""
    poller = Poller()
    streams = StepStreams(str(tmp_path), poller, lambda _: None, tasks=1, has_srun=True)
    reading, writing = os.pipe()
    streams.add_task(0, StreamEnds(stdout=reading))
    killed, of_killed = socket.socketpair()
    streams.attach(of_killed, "own", wants_input=False)
    os.write(writing, b"unseen\n")
    os.close(writing)
    poller.wait(0)
    killed.close()
    client, of_client = socket.socketpair()
    with client:
        streams.attach(of_client, "end", wants_input=False)
        client.sendall(encode_frame(Frame(CREDIT, 100, b"")))
        poller.wait(0)
        assert encode_frame(Frame(OUTPUT, 0, b"unseen\n")) in client.recv(1_000)
        of_client.close()


def test_end_is_sent_after_all_that_a_full_disk_has_delayed(tmp_path: Path) -> None:
    """A process of another step still has the pipe, which never ends."""
    poller = Poller()
    # 16 KiB for each output, and no file for more.
    streams = StepStreams(str(tmp_path / "none"), poller, lambda _: None, tasks=256, has_srun=True)
    reading, writing = os.pipe()
    streams.add_task(0, StreamEnds(stdout=reading))
    os.write(writing, bytes(50_000))
    streams.finish()
    client, of_client = socket.socketpair()
    client.setblocking(False)
    decoder = FrameDecoder()
    with client, of_client:
        streams.attach(of_client, "own", wants_input=False)
        client.sendall(encode_frame(Frame(CREDIT, 100_000, b"")))
        poller.wait(0)
        _, _, data = client.recv(100_000).partition(b"\n")
        early = list(decoder.decode(data))
        written = sum(len(frame.body) for frame in early)
        client.sendall(encode_frame(Frame(WRITTEN, 0, BYTE_COUNT.pack(OUTPUT, written))))
        poller.wait(0)
        streams.act(time.monotonic() + 60)
        late = list(decoder.decode(client.recv(100_000)))
    os.close(writing)
    assert {frame.kind for frame in early} == {OUTPUT}
    assert b"".join(frame.body for frame in (*early, *late)) == bytes(50_000)
    assert late[-2:] == [Frame(OUTPUT, 0, b""), Frame(FINISHED, 0, b"")]


def test_all_sruns_get_what_is_written_from_now_on(start_step: StartStep) -> None:
    step = streamed(start_step, "echo one; read line; echo two")
    with Reader(step, credit=100, wants_input=True) as owner:
        owner.receive_until(b"one\n")
        with (
            Reader(step, credit=100, wants_input=True) as late,
            Reader(step, "start", credit=100) as whole,
        ):
            assert [one.answer["input"] for one in (owner, late, whole)] == [True, False, False]
            owner.send(INPUT, body=b"\n")
            for reader in (owner, late, whole):
                reader.receive_all()
    texts = [one.output[OUTPUT, 0] for one in (owner, late, whole)]
    assert texts == [b"one\ntwo\n", b"two\n", b"one\ntwo\n"]


def test_output_that_only_a_killed_srun_missed_comes_again(start_step: StartStep) -> None:
    step = streamed(start_step, "echo one; read line; echo two; read line; echo three")
    killed = Reader(step, credit=100)
    while killed.output[OUTPUT, 0] != b"one\n":
        assert killed.receive(is_generous=False)
    with Reader(step, credit=100, wants_input=True) as other:
        other.send(INPUT, body=b"\n")
        other.receive_until(b"two\n")
        killed.close()
    with Reader(step, credit=100, wants_input=True) as third:
        third.send(INPUT, body=b"\n")
        third.receive_all()
    assert third.output[OUTPUT, 0] == b"one\ntwo\nthree\n"


def test_srun_that_is_behind_keeps_nothing_for_the_next(start_step: StartStep) -> None:
    step = streamed(start_step, "seq 2000; read line")
    with Reader(step, credit=2**31) as first, Reader(step, "start"):
        first.receive_until(b"\n2000\n")
        wait_until(lambda: step.request({"kind": "state"}), "an answer after the last frame")
    with Reader(step, credit=100, wants_input=True) as second:
        second.send(INPUT)
        second.receive_all()
    assert second.output[OUTPUT, 0] == b""


def test_hundred_stopped_sruns_delay_no_other(start_step: StartStep) -> None:
    step = streamed(start_step, "read line; seq 100000")
    stopped = [Reader(step, credit=2**31) for _ in range(100)]
    with Reader(step, credit=2**31, wants_input=True) as reader:
        reader.send(INPUT, body=b"\n")
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == numbered(100_000)
    for one in stopped:
        one.receive_all()
        assert one.output[OUTPUT, 0] == numbered(100_000)


TOO_MUCH = LAG_MAX * 5 // 4
"""Output that is not kept for a second srun which takes nothing."""


def test_output_that_a_stopped_second_srun_leaves_is_bounded(start_step: StartStep) -> None:
    script = f"read line; seq 1000000 {10**6 + TOO_MUCH // 8}; read line; echo end"
    step = streamed(start_step, script)
    with (
        Reader(step, credit=2**31, wants_input=True) as first,
        Reader(step, credit=50_000) as second,
    ):
        first.send(INPUT, body=b"\n")
        while len(first.output[OUTPUT, 0]) < TOO_MUCH:
            assert first.receive()
        wait_until(lambda: not list(step.directory.glob("stream.*")), "the removal of the file")
        second.send(CREDIT, 2**31)
        first.send(INPUT, body=b"\n")
        for reader in (first, second):
            reader.receive_all()
    whole, part = first.output[OUTPUT, 0], second.output[OUTPUT, 0]
    missed = second.missed[OUTPUT, 0]
    assert missed
    assert whole[:50_000] + whole[50_000 + missed :] == part
    assert not first.missed


def test_own_srun_misses_nothing_that_came_before_it(start_step: StartStep) -> None:
    step = streamed(start_step, f"read line; seq 1000000 {10**6 + TOO_MUCH // 8}")
    with Reader(step, credit=2**31, wants_input=True) as early, Reader(step, "own") as own:
        early.send(INPUT, body=b"\n")
        early.receive_all()
        own.send(CREDIT, 2**31)
        own.receive_all()
    assert own.output == early.output
    assert not own.missed


def test_of_hundred_that_attach_at_once_one_gives_the_input(start_step: StartStep) -> None:
    step = streamed(start_step, "cat")
    node = StepNode("n1", [0], str(step.directory), is_running=True)

    def attach(_: int) -> StepStream:
        return StepStream(node, "start", wants_input=True, check=lambda: None)

    with ThreadPoolExecutor(100) as pool:
        streams = list(pool.map(attach, range(100)))
    (giver,) = [one for one in streams if one.has_input]
    giver.send(INPUT, body=b"line\n")
    giver.send(INPUT)
    for one in streams:
        one.socket.setblocking(True)
        output = b""
        while not one.is_finished:
            output += b"".join(frame.body for frame in one.receive() if frame.kind == OUTPUT)
        one.socket.close()
        assert output == b"line\n"


def test_input_goes_to_all_tasks_and_ends(start_step: StartStep) -> None:
    step = streamed(start_step, "cat", tasks=3)
    text = numbered(50_000)
    with Reader(step, credit=2**31, wants_input=True) as reader:
        for at in range(0, len(text), INPUT_WINDOW // 2):
            while at - reader.input_taken > INPUT_WINDOW // 2:
                assert reader.receive()
            reader.send(INPUT, body=text[at : at + INPUT_WINDOW // 2])
        reader.send(INPUT)
        reader.receive_all()
    assert [reader.output[OUTPUT, rank] for rank in range(3)] == [text] * 3


def test_input_may_go_to_one_task_alone(start_step: StartStep) -> None:
    step = streamed(start_step, "cat", tasks=3, input_rank=1)
    with Reader(step, credit=100, wants_input=True) as reader:
        reader.send(INPUT, body=b"for one\n")
        reader.send(INPUT)
        reader.receive_all()
    assert [reader.output[OUTPUT, rank] for rank in range(3)] == [b"", b"for one\n", b""]


def test_task_that_has_closed_its_input_stops_no_other(start_step: StartStep) -> None:
    step = streamed(start_step, "[ $SLURM_PROCID = 0 ] && exit\nwc -c", tasks=2)
    with Reader(step, credit=1_000, wants_input=True) as reader:
        while 0 not in reader.exits:
            assert reader.receive()
        for _ in range(4):
            reader.send(INPUT, body=b"x" * 50_000)
            taken = reader.input_taken
            while reader.input_taken < taken + 50_000:
                assert reader.receive()
        reader.send(INPUT)
        reader.receive_all()
    assert reader.output[OUTPUT, 1].strip() == b"200000"


def test_signal_of_an_srun_goes_to_the_tasks(start_step: StartStep) -> None:
    step = streamed(start_step, "trap 'echo int; exit 7' INT\necho ready\nread line", tasks=2)
    with Reader(step, credit=100) as reader:
        for rank in range(2):
            reader.receive_until(b"ready\n", rank)
        reader.send(SIGNAL, signal.SIGINT)
        reader.receive_all()
    assert reader.exits == {0: 7 << 8, 1: 7 << 8}
    assert reader.output[OUTPUT, 1] == b"ready\nint\n"


def test_terminal_belongs_to_the_first_task_and_has_its_size(start_step: StartStep) -> None:
    script = "trap 'stty size; exit' WINCH; stty size; tty; while :; do sleep 0.05; done"
    step = streamed(start_step, script, tasks=2, terminal=(24, 100))
    with Reader(step, credit=1_000, wants_input=True) as reader:
        reader.receive_until(b"/dev/pts/")
        reader.send(WINDOW_SIZE, body=b"\x00\x1e\x00\x50")
        reader.receive_until(b"30 80")
        reader.receive_until(b"not a tty", 1)
        step.end()
        reader.receive_all()
    assert reader.output[OUTPUT, 0].startswith(b"24 100\r\n/dev/pts/")


def test_line_about_the_end_comes_to_the_errors_of_the_first_task(start_step: StartStep) -> None:
    step = streamed(start_step, "echo ready; read line", tasks=2, title="STEP 7.0 ON n1")
    with Reader(step, credit=1_000) as reader:
        reader.receive_until(b"ready\n")
        step.end("time limit")
        reader.receive_all()
    line = r"slurmstepd: error: \*\*\* STEP 7\.0 ON n1 CANCELLED AT \S+ DUE TO TIME LIMIT \*\*\*\n"
    assert re.fullmatch(line, reader.output[ERRORS, 0].decode())
    assert set(reader.exits.values()) == {signal.SIGTERM}


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 9,
        b"\x00\x10\x00\x00" + b"x" * 100,
        encode_frame(Frame(SIGNAL, 2**31, b"")),
        encode_frame(Frame(WINDOW_SIZE, 0, b"x")),
    ],
)
def test_bad_frames_disturb_no_other_srun(start_step: StartStep, body: bytes) -> None:
    step = streamed(start_step, "read line; echo good")
    with Reader(step) as bad, Reader(step, credit=100, wants_input=True) as good:
        bad.connection.sendall(body)
        if body[0] == 0xFF:
            assert not bad.receive()
        good.send(INPUT)
        good.receive_all()
    assert good.output[OUTPUT, 0] == b"good\n"


def test_killed_step_daemon_leaves_no_task(start_step: StartStep) -> None:
    step = streamed(start_step, "echo ready; read line", tasks=3)
    with Reader(step, credit=100) as reader:
        for rank in range(3):
            reader.receive_until(b"ready\n", rank)
        start = read_start(str(step.directory))
        assert start is not None
        assert len(step.processes()) == 3
        os.kill(start.daemon, signal.SIGKILL)
        while reader.receive():
            pass
    # Their input has ended.
    wait_until(lambda: not step.processes(), "the end of the tasks")


def test_task_with_a_file_has_no_stream(start_step: StartStep, tmp_path: Path) -> None:
    tasks = (StepTask(0, output=str(tmp_path / "zero")), StepTask(1))
    step = start_step("echo $SLURM_PROCID; echo error >&2", input="", output="", tasks=tasks)
    with Reader(step, credit=100) as reader:
        reader.receive_all()
    assert dict(reader.output) == {(OUTPUT, 1): b"1\n", (ERRORS, 1): b"error\n"}
    assert (tmp_path / "zero").read_text() == "0\nerror\n"


def test_tasks_that_share_a_file_lose_no_line(start_step: StartStep, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old\n")
    tasks = [StepTask(rank, output=str(file)) for rank in range(8)]
    step = start_step("echo $SLURM_PROCID", input="", output="", tasks=tasks)
    with Reader(step, credit=100) as reader:
        reader.receive_all()
    assert sorted(file.read_text().split()) == [str(rank) for rank in range(8)]


def test_signal_of_an_srun_goes_to_all_processes_of_a_task(start_step: StartStep) -> None:
    inner = "(trap 'echo inner; exit' USR1; echo ready; read line)"
    step = streamed(start_step, f"trap 'echo outer' USR1; {inner}; true")
    with Reader(step, credit=100) as reader:
        reader.receive_until(b"ready\n")
        reader.send(SIGNAL, signal.SIGUSR1)
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == b"ready\ninner\nouter\n"
    assert reader.exits == {0: 0}


def test_srun_that_never_stops_sending_keeps_no_other_one_waiting(start_step: StartStep) -> None:
    step = streamed(start_step, "read line; echo $line")
    frames = encode_frame(Frame(CREDIT, 0, b"")) * 5_000  # slower to read than to send
    program = (
        "import os, sys; data = sys.stdin.buffer.read(); os.set_blocking(1, True)\n"
        "os.write(1, data); os.write(2, b'.')\n"
        "while True: os.write(1, data)"
    )
    with (
        Reader(step, wants_input=True) as first,
        Reader(step) as sender,
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=sender.connection.fileno(),
            stderr=subprocess.PIPE,
        ) as flood,
    ):
        assert flood.stdin is not None
        assert flood.stderr is not None
        flood.stdin.write(frames)
        flood.stdin.close()
        assert flood.stderr.read(1) == b"."
        try:
            with Reader(step, credit=2**31) as late:
                first.send(INPUT, 0, b"end\n")
                late.receive_until(b"end\n")
        finally:
            flood.kill()
    assert step.wait().status == 0


def test_tasks_that_have_not_started_end_by_a_signal_to_the_step(start_step: StartStep) -> None:
    """The first tasks run, and srun is served, while the others start."""
    tasks = 600
    step = streamed(start_step, "echo on; exec sleep 600", tasks=tasks)
    with Reader(step, "own", credit=2**31) as reader:
        reader.send(SIGNAL, signal.SIGKILL)
        reader.receive_all()
    assert reader.exits == dict.fromkeys(range(tasks), signal.SIGKILL)
    assert len(reader.output) < tasks
    assert step.wait().status == signal.SIGKILL


def test_task_that_starts_later_gets_all_of_the_input(start_step: StartStep) -> None:
    step = streamed(start_step, "cat", tasks=100)
    with Reader(step, "own", wants_input=True, credit=2**31) as reader:
        reader.send(INPUT, 0, b"text\n")
        reader.send(INPUT, 0, b"")
        reader.receive_all()
    assert {reader.output[OUTPUT, rank] for rank in range(100)} == {b"text\n"}
    assert step.wait().status == 0


def test_step_with_too_many_tasks_for_its_node_says_so_and_ends(tmp_path: Path) -> None:
    launcher = StartedLauncher(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    tasks = tuple(StepTask(rank) for rank in range(64))
    try:
        step = StartedStep(
            launcher, tmp_path / "few", "exec sleep 600", input="", output="", tasks=tasks
        )
        with Reader(step, "own", credit=2**31) as reader:
            reader.receive_all()
        text = b"slurmstepd: error: cannot start all tasks: Too many open files\n"
        assert reader.output[ERRORS, 0] == text
        assert len(reader.exits) == 64
        assert {1 << 8, signal.SIGTERM} <= {*reader.exits.values()}
        assert step.wait().status == signal.SIGTERM
    finally:
        launcher.close()
