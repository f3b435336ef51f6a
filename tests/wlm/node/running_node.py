"""Node daemon in a process of its own, and a controller that a test plays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairbank.cluster.job import Run
from fairbank.wlm.node.control_group import group_processes, remove_group
from fairbank.wlm.node.job_directory import JobDirectories
from fairbank.wlm.node.orphans import find_orphans, group_of
from fairbank.wlm.node.settings import HostedNode, NodeSettings
from fairbank.wlm.protocol.frames import BODY_MAX, Frame, FrameDecoder
from fairbank.wlm.protocol.messages import (
    Accepted,
    EndJob,
    ForgetRun,
    Hello,
    Message,
    Registration,
    RunOutcome,
    RunStatus,
    StartJob,
    StartStep,
    StepStatus,
    TaskStart,
    decode_message,
    encode_message,
)
from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.stepd.step import StepStart, read_start
from tests.support.conditions import wait_until
from tests.support.signals import kill

SECONDS = 30.0
ENVIRONMENT = (b"PATH=" + os.fsencode(os.environ["PATH"]), b"LC_ALL=C")

T = TypeVar("T", bound=Message)


class Controller:
    """Connection of a controller, which blocks. `registration` is the first that the node sent."""

    def __init__(self, path: str, hello: Hello | None = None) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        self._socket.connect(path)
        self._socket.sendall(encode_message(hello or Hello(role="controller", name="test")))
        self._decoder = FrameDecoder(BODY_MAX)
        self._frames: Iterator[Frame] = iter(())
        self._number = 0
        self.changes: list[RunStatus] = []
        self.steps: list[StepStatus] = []
        self.node = self._receive(Hello)
        self.registration = self._receive(Registration)

    def _messages(self) -> Iterator[tuple[Message, int]]:
        while True:
            for frame in self._frames:
                yield decode_message(frame), frame.number
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError("the node daemon has closed the connection")
            self._frames = self._decoder.decode(data)

    def _receive(self, kind: type[T], number: int = 0) -> T:
        for message, answers in self._messages():
            if isinstance(message, RunStatus):
                self.changes.append(message)
            if isinstance(message, StepStatus):
                self.steps.append(message)
            if isinstance(message, kind) and answers == number:
                return message
            if answers == number and number:
                raise AssertionError(f"not {kind.__name__}: {message}")
        raise AssertionError

    def ask(self, request: Message, kind: type[T]) -> T:
        """Send a request and return its answer, which must be of this kind."""
        self.send(request)
        return self._receive(kind, self._number)

    def send(self, request: Message) -> None:
        """Send a request without waiting for its answer."""
        self._number += 1
        self._socket.sendall(encode_message(request, self._number))

    def wait(self, run: Run, state: str, *, changes: int = 1) -> RunStatus:
        """Return the status of a run as soon as it has had this state so many times."""
        while True:
            known = [
                status
                for status in (*self.registration.runs, *self.changes)
                if (status.run, status.state) == (run, state)
            ]
            if len(known) >= changes:
                return known[changes - 1]
            self._receive(RunStatus)

    def wait_for_step(self, run: Run, step: int) -> RunOutcome:
        """Return how a step ended, as soon as it has."""
        while True:
            for status in (*self.registration.steps, *self.steps):
                if (status.run, status.step) == (run, step) and status.end is not None:
                    return status.end
            self._receive(StepStatus)

    def states(self, run: Run) -> list[str]:
        return [status.state for status in self.changes if status.run == run]

    def forget(self, run: Run) -> None:
        self.ask(ForgetRun(run=run), Accepted)

    def end(self, run: Run, reason: str = "cancelled", seconds: float | None = 0) -> None:
        self.ask(EndJob(run=run, reason=reason, seconds=seconds), Accepted)

    def close(self) -> None:
        self._socket.close()


class RunningNode:
    """Node daemon with one node. `folder` has all its files; jobs write to `folder/out`."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.hosted = HostedNode(
            name="n1",
            spool=str(folder / "spool"),
            socket=str(folder / "n1.sock"),
            cpus=2,
            memory=1_000,
        )
        self._file, self._log = folder / "node.json", folder / "node.log"
        defaults: dict[str, Any] = {"nodes": (self.hosted,), "kill_wait": 0.2}
        self.settings = NodeSettings(**(defaults | settings))
        self._file.write_bytes(msgspec.json.encode(self.settings))
        self.directories = JobDirectories(folder / "spool", "n1")
        self.command = [sys.executable, "-P", "-m", "fairbank.wlm.node", str(self._file)]
        self._runs: list[Run] = []
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", self.log()
        self.controller = Controller(self.hosted.socket)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the daemon; its launcher ends by itself."""
        self.controller.close()
        self._process.send_signal(number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def log(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def launcher(self) -> int:
        """Process id of the launcher: the child of the daemon that is no Prolog or Epilog."""
        table = process_table().values()
        return min(process.pid for process in table if process.parent == self._process.pid)

    # ------------------------------------------------------------------ jobs

    def job(self, script: str | bytes, job_id: int = 1, **fields: Any) -> StartJob:
        """Return the request to start a job."""
        defaults: dict[str, Any] = {
            "run": Run("test", job_id, int(time.time())),
            "script": f"#!/bin/sh\n{script}".encode() if isinstance(script, str) else script,
            "environment": ENVIRONMENT,
            "directory": str(self.folder),
            "output": str(self.folder / "out"),
        }
        start = StartJob(**(defaults | fields))
        self._runs.append(start.run)
        return start

    def submit(self, script: str | bytes, job_id: int = 1, **fields: Any) -> Run:
        """Start a job."""
        start = self.job(script, job_id, **fields)
        self.controller.ask(start, Accepted)
        return start.run

    def start_step(self, run: Run, script: str, step: int = 0, **fields: Any) -> StartStep:
        """Start a step of a shell script, by default with one task."""
        start = self.step_to_start(run, script, step, **fields)
        self.controller.ask(start, Accepted)
        return start

    def step_to_start(self, run: Run, script: str, step: int = 0, **fields: Any) -> StartStep:
        defaults: dict[str, Any] = {
            "run": run,
            "step": step,
            "tasks": (TaskStart(0),),
            "arguments": ("/bin/sh", "-c", script),
            "environment": ENVIRONMENT,
            "directory": str(self.folder),
        }
        return StartStep(**(defaults | fields))

    def lines(self, minimum: int = 0) -> list[str]:
        """Return the output of jobs, without Slurm's line about an end, as soon as it has a
        number of lines.
        """
        path = self.folder / "out"

        def content() -> list[str]:
            lines = path.read_text().splitlines() if path.exists() else []
            return [line for line in lines if not line.startswith("slurmstepd: ")]

        wait_until(lambda: len(content()) >= minimum, f"{minimum} lines of output")
        return content()

    def step(self, run: Run) -> StepStart:
        """Return the identity of the step daemon of a run."""
        directory = str(self.directories.path(run))
        wait_until(lambda: read_start(directory), "the start of the step")
        start = read_start(directory)
        assert start is not None
        return start

    def processes(self, run: Run) -> set[int]:
        """Return the living processes of a run, however they were started."""
        directory = self.directories.path(run)
        start = read_start(str(directory)) if directory.exists() else None
        return {process.pid for process in find_orphans(directory, start, process_table())}

    def step_processes(self, run: Run, step: int) -> set[int]:
        """Return the living processes of a step, and its step daemon."""
        directory = self.directories.step_path(run, step)
        start = read_start(str(directory)) if directory.exists() else None
        table = process_table()
        daemon = {start.daemon} & table.keys() if start else set()
        return daemon | {process.pid for process in find_orphans(directory, start, table)}

    def close(self) -> None:
        """End the daemon and what the jobs have left behind."""
        if self._process.poll() is None:
            self.kill(signal.SIGTERM)
        for run in self._runs:
            directory = self.directories.path(run)
            group, start = group_of(directory), read_start(str(directory))
            processes = self.processes(run)
            for number in self.directories.steps(run):
                processes |= self.step_processes(run, number)
            for pid in {start.daemon} | processes if start and processes else processes:
                kill(pid)
            wait_until(partial(has_no_process, group), "the end of the processes")
            remove_group(group)


def has_no_process(group: str) -> bool:
    return not group_processes(group)


StartNode = Callable[..., RunningNode]
