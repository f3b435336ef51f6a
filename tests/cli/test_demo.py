"""Tests of `fairbank demo`: everything that it shows exists, and a failing command ends it."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
import time
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairbank.cli.commands.planning import demo as command
from fairbank.cli.commands.planning.demo import DemoShell, run, serving
from fairbank.cli.commands.planning.demo_queue import FAIRBANK, show_queue
from fairbank.core.errors import Conflict, FairbankError, Forbidden, Unavailable

pytestmark = pytest.mark.slow

CONTEXT: Any = SimpleNamespace(
    print_text=lambda text: print(text, file=sys.stdout), options=Namespace()
)
SHOWN = (
    "balance",
    "jobs --refused",
    "statement",
    "usage",
    "quote",
    "report centre",
    "audit verify",
)


def demo(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("FAIRBANK")
    } | {"HOME": str(home), "COLUMNS": "100"}
    return subprocess.run(
        [*FAIRBANK, "demo", *words],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def kept_demo(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run a demo that keeps its bank."""
    folder = tmp_path_factory.mktemp("demo")
    return demo("--directory", str(folder / "trial"), home=folder), folder / "trial"


def test_demo_shows_the_month_and_runs_each_command(
    kept_demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """The demo runs each command in this order, and each one has output."""
    process, _ = kept_demo
    assert process.returncode == 0, process.stdout
    typed = re.split(r"(?m)^\$ fairbank ", process.stdout)
    assert [part.startswith(words) for part, words in zip(typed[1:], SHOWN, strict=True)] == [
        True
    ] * len(SHOWN)
    month, balance, refused, statement, usage, quote, centre, audit = typed
    assert "the journal says the same as every row" in month
    assert "AVAILABLE" in balance
    assert re.search(r"short by [\d.,]+ SU", " ".join(refused.split()))
    assert "try: " in refused, "a refusal without a remedy"
    assert "charge" in statement
    assert "SU" in usage
    assert "SU" in quote
    # 768 and 24 x 8 processors at 1 SU an hour, for 720 hours.
    capacities = [line.split()[:2] for line in centre.splitlines()]
    assert ["cpu", "552960"] in capacities
    assert ["gpu", "138240"] in capacities
    assert re.search(r"[1-9]\d* GPU-hours", " ".join(centre.split()))
    assert "every row is as the journal says" in " ".join(audit.split())


def test_kept_demo_bank_can_be_audited(
    kept_demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    process, folder = kept_demo
    assert f"fairbank serve --config {folder}/fairbank.toml" in process.stdout
    audit = [*FAIRBANK, "audit", "verify", "--config", str(folder / "fairbank.toml")]
    assert subprocess.run(audit, capture_output=True, check=False).returncode == 0
    again = demo("--directory", str(folder), home=folder)
    assert (again.returncode != 0, "Traceback" in again.stdout) == (True, False)


def test_no_job_of_the_demo_ends_in_the_future(
    kept_demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    process, folder = kept_demo
    assert process.returncode == 0, process.stdout
    with closing(sqlite3.connect(folder / "fairbank.sqlite")) as bank:
        ((latest,),) = bank.execute("SELECT max(ended_at) FROM run")
    today = time.time() // 86_400 * 86_400
    assert today - 2 * 86_400 < latest <= today


def test_failing_command_ends_the_demo(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """This directory has no bank."""
    with pytest.raises(FairbankError, match="fairbank balance ended with 6"):
        DemoShell(CONTEXT, tmp_path).type("balance")
    assert "$ fairbank balance" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("program", "seconds", "reason"),
    [
        ("raise SystemExit(3)", 60, "ended with exit code 3; it wrote nothing"),
        ("raise SystemExit('no disk')", 60, "ended with exit code 1; it wrote: no disk"),
        ("import signal; signal.pause()", 0, "still starts after 0 s: no bank answers at unix:"),
    ],
)
def test_server_that_does_not_start_ends_the_demo_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, seconds: int, reason: str
) -> None:
    monkeypatch.setattr(command, "FAIRBANK", (sys.executable, "-c", program))
    monkeypatch.setattr(command, "START_SECONDS", seconds)
    with pytest.raises(Unavailable, match=reason), serving(tmp_path):
        pytest.fail("the server does not answer")


def test_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "month.swf").write_text("mine")
    with pytest.raises(Conflict, match="is not empty"):
        run(CONTEXT, Namespace(directory=str(tmp_path)))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_directory_that_cannot_be_made_is_an_error_of_its_kind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = demo("--directory", str(tmp_path / "file" / "trial"), home=tmp_path)
    assert process.returncode == 2
    assert "cannot make the directory" in process.stdout


def test_directory_without_permission_ends_with_that_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "mkdir", deny)
    with pytest.raises(Forbidden, match="you may not write there") as refused:
        run(CONTEXT, Namespace(directory=str(tmp_path / "trial")))
    assert refused.value.exit_code == 4


@pytest.mark.campaign
def test_queue_of_the_demo_charges_what_accounting_has(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It takes over a minute: a job runs into its time limit."""
    show_queue(CONTEXT, tmp_path)
    shown = "".join(capfd.readouterr())
    for state in ("TIMEOUT", "FAILED", "REQUEUED", "COMPLETED"):
        assert state in shown
    assert "Allocation_exhausted" in shown
    assert sorted(re.findall(r"(?m)^(\d): lab\d$", shown)) == ["0", "1", "2", "3"]
    assert "The ledger and accounting agree." in shown
    assert not (tmp_path / "cluster" / "controller.sock").exists()
