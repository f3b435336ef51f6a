"""Launcher and steps of a test; what a test leaves behind is ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.wlm.stepd.steps import StartedLauncher, StartedStep


class StartStep(Protocol):
    """Function that starts a step of a script."""

    def __call__(self, script: str | bytes, **options: Any) -> StartedStep: ...


@pytest.fixture(scope="module")
def launcher() -> Iterator[StartedLauncher]:
    started = StartedLauncher()
    yield started
    started.close()


@pytest.fixture
def start_step(launcher: StartedLauncher, tmp_path: Path) -> Iterator[StartStep]:
    steps: list[StartedStep] = []

    def start(script: str | bytes, **options: Any) -> StartedStep:
        starter = options.pop("launcher", launcher)
        step = StartedStep(starter, tmp_path / f"step{len(steps)}", script, **options)
        steps.append(step)
        return step

    yield start
    for step in steps:
        step.kill_all()
