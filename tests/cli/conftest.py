"""Fixtures of the tests of the commands: a served site, and commands that run in this process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from fairbank.cli import main
from fairbank.cli.commands.bank import sproject
from tests.cli.fakes import FakeServices
from tests.cli.served_site import Bank, serve_site
from tests.cli.workloads import write_workloads
from tests.support.json_schemas import check_output


class CommandResult(NamedTuple):
    """Result of a command: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


def heads(helpformat: CommandResult) -> list[str]:
    """Return the headers that --helpformat lists: each begins a line, and its sentence follows."""
    lines = helpformat.out.splitlines()
    return [line.split()[0] for line in lines if not line.startswith(" ")]


def session(command: str, result: CommandResult) -> str:
    """Return the text of a session: the command, its output, its stderr and its exit code."""
    stderr = f"--- stderr\n{result.err}" if result.err else ""
    return f"$ {command}\n{result.out}{stderr}--- exit {result.code}\n"


Run = Callable[..., CommandResult]
ASKS = frozenset(
    """
    alloc balance charge deposit eff hold import jobs project quote reconcile refund release
    slurm statement status storage token transfer undo usage whoami withdraw
    allocations failures projects
    """.split()
)
"""Commands, and those of sproject, that ask the bank whatever their options are."""
FOR_SCRIPTS = frozenset("--json --csv -P --parsable -n --noheader --helpformat --help -h".split())


def check_bank(words: Sequence[object], result: CommandResult) -> None:
    """Check that a text names the bank that it is from."""
    if result.code == 0 and ASKS.intersection(words[:1]) and not FOR_SCRIPTS.intersection(words):
        assert re.search(r"\bbank\s+\w", result.out + result.err), (words, result)


@pytest.fixture(scope="session")
def bank() -> Iterator[Bank]:
    """Serve a site whose ledger no test changes."""
    with serve_site() as address:
        yield address


@pytest.fixture(scope="module")
def own_bank() -> Iterator[Bank]:
    """Serve a site for the tests of one file, which may change it."""
    with serve_site() as address:
        yield address


@pytest.fixture
def clean_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Set the zone of New York and 80 columns, and hide the user's own settings."""
    for name in (
        "NO_COLOR",
        "SBATCH_ACCOUNT",
        "SLURM_ACCOUNT",
        "SLURM_CLUSTER_NAME",
        "XDG_STATE_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def fairbank(bank: Bank, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `fairbank("balance", "--json")` against the site; `services=` replaces the real
    services.
    """
    clean_env.setenv("FAIRBANK_SERVER", bank.unix)
    clean_env.setenv("FAIRBANK_CLUSTER", "darwin")
    return runner(main.run, capsys)


@pytest.fixture
def run(fairbank: Run, clean_env: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run one command line in the directory of `workloads`, with the real services."""
    clean_env.chdir(tmp_path)
    write_workloads(tmp_path)
    return lambda words: fairbank(*words.split())


@pytest.fixture
def changing(
    own_bank: Bank, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run commands against a site that the test may change."""
    clean_env.setenv("FAIRBANK_SERVER", own_bank.unix)
    return runner(main.run, capsys)


@pytest.fixture
def hadm(bank: Bank, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `sproject` against the site."""
    clean_env.setenv("FAIRBANK_SERVER", bank.unix)
    return runner(sproject.run, capsys)


def runner(run: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object, services: FakeServices | None = None) -> CommandResult:
        capsys.readouterr()
        with services.installed() if services else nullcontext():
            code = run([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        check_output(words, captured.out)
        result = CommandResult(code, captured.out, captured.err)
        check_bank(words, result)
        return result

    return call
