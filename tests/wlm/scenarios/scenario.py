"""Scenarios: their files, and how one is run as a process."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
SECONDS = 400
SAMPLE = {
    "wrap", "sbatch-lines", "array-throttle", "afterok", "hold", "begin-in-an-hour",
    "cancel-a-running-job", "suspend-twice", "exit-code", "update-name-and-comment",
    "pattern-array", "short-request", "short-quoting", "short-wait-fails", "short-follow",
    "layout-2-nodes-plane", "highest-exit-code", "kill-on-bad-exit", "labels", "multi-prog-rest",
}  # fmt: skip
_NEW, _END = "\x01", "\x02"  # begin a command and its exit code in the output of the shell


@dataclass(frozen=True)
class Scenario:
    """Commands that are run one after the other, by bash with the functions of prelude.sh."""

    group: str
    name: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class CommandOutput:
    """Command of a scenario with what it printed."""

    command: str
    output: str
    code: int


@dataclass(frozen=True)
class Site:
    """Workload manager that runs scenarios.

    Attributes:
        folder: directory for the files of the scenarios.
        environment: that of the commands.
        states: function that returns the states of all jobs as lines "job|state|reason".
        parallel: number of scenarios at a time.
    """

    folder: Path
    environment: Mapping[str, str]
    states: Callable[[], str]
    parallel: int


def scenarios() -> list[Scenario]:
    """Return all scenarios.

    In a file, a line `## name` begins one and a line `$ command` a command; other lines continue
    the command. Lines before the first name describe the file.
    """
    listed = []
    for file in sorted(FOLDER.glob("*.txt")):
        if file.name.startswith("recorded"):
            continue
        for text in re.split(r"^## ", file.read_text(), flags=re.MULTILINE)[1:]:
            name, _, body = text.partition("\n")
            commands = re.split(r"^\$ ", body.rstrip(), flags=re.MULTILINE)[1:]
            listed.append(Scenario(file.stem, name, tuple(text.rstrip() for text in commands)))
    return listed


def sample() -> list[Scenario]:
    """Return a few quick scenarios of each kind."""
    return [scenario for scenario in scenarios() if scenario.name in SAMPLE]


def run_all(site: Site, chosen: Sequence[Scenario]) -> dict[str, list[CommandOutput]]:
    """Run scenarios beside each other. Return what their commands printed, by name."""
    site.folder.mkdir(parents=True, exist_ok=True)
    with _followed_states(site) as states, ThreadPoolExecutor(site.parallel) as threads:
        results = threads.map(lambda scenario: _run(site, scenario, states), chosen)
        return {scenario.name: one for scenario, one in zip(chosen, results, strict=True)}


@contextmanager
def _followed_states(site: Site) -> Iterator[Path]:
    """Keep a file with the states of all jobs: one query serves all scenarios.

    Its time is that of the begin of the query.
    """
    file, stop = site.folder / "states", threading.Event()

    def write() -> None:
        new = file.with_suffix(".new")
        new.touch()  # a time of the same clock as that of files of the scenarios
        begun = new.stat().st_mtime_ns
        new.write_text(site.states())
        os.utime(new, ns=(begun, begun))
        new.replace(file)

    def follow() -> None:
        while not stop.wait(0.2):
            write()

    write()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(follow)
        try:
            yield file
        finally:
            stop.set()
    following.result()


def _run(site: Site, scenario: Scenario, states: Path) -> list[CommandOutput]:
    folder = site.folder / scenario.name
    folder.mkdir()
    script = folder / ".scenario"
    script.write_text(_script(scenario))
    process = subprocess.Popen(
        ["bash", str(script)],
        cwd=folder,
        env={**site.environment, "STATES": str(states)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
    return list(_outputs(scenario, printed.decode(errors="replace")))


def _script(scenario: Scenario) -> str:
    lines = [f". {shlex.quote(str(FOLDER / 'prelude.sh'))}"]
    for command in scenario.commands:
        lines += [f"printf '{_NEW}'", command, f"printf '{_END}%s' $?"]
    return "\n".join([*lines, ""])


def _outputs(scenario: Scenario, printed: str) -> Iterator[CommandOutput]:
    parts = printed.split(_NEW)[1:]
    for command, part in zip(scenario.commands, parts, strict=False):
        output, _, code = part.partition(_END)
        yield CommandOutput(command, output, int(code or -1))
