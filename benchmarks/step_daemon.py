"""Step daemon: memory that it shares with no other process, and short steps per second."""

from __future__ import annotations

import os
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, Say, Table, at_most
from tests.wlm.stepd.steps import StartedLauncher, StartedStep, private_kib

AT_ONCE, STEPS = 20, 400
MEMORY_MIB = 4
ABOUT = (
    f"A launcher starts {AT_ONCE} steps that wait, and their step daemons are asked for their state"
    " 100 times each: memory that is private to one step daemon, the largest of them. Then"
    f" {STEPS} steps of `true`, {AT_ONCE} at a time, to the end that is stored."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 2 if short else 5
    memory, rates = [], []
    with TemporaryDirectory() as folder, closing(StartedLauncher()) as launcher:
        paths = (Path(folder) / f"step{number}" for number in count())
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            waiting = [StartedStep(launcher, next(paths), "exec sleep 600") for _ in range(AT_ONCE)]
            for step in waiting * 100:
                step.request({"kind": "state"})
            memory.append(max(private_kib(step.daemon) for step in waiting) / 1_024)
            for step in waiting:
                step.end()
            for step in waiting:
                step.wait()
            begun = time.perf_counter()
            for _ in range(STEPS // AT_ONCE):
                steps = [
                    StartedStep(launcher, next(paths), b"#!/bin/true\n", output=os.devnull)
                    for _ in range(AT_ONCE)
                ]
                for step in steps:
                    step.wait()
            rates.append(STEPS / (time.perf_counter() - begun))
    private = Figure("private memory of a step daemon", "MiB", tuple(memory))
    speed = Figure("steps of `true`", "steps/s", tuple(rates))
    promise = at_most("private memory of a step daemon", private, MEMORY_MIB)
    return [Table("Step daemon of the workload manager", ABOUT, (private, speed), (promise,))]
