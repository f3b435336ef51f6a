"""Start-up time: common commands import few modules. The imports are asserted; the time is only
reported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from tests.cli.served_site import Bank

# Importing any of these takes too long at the start of a command: at least 10 ms of CPU, some
# take hundreds.
FORBIDDEN = frozenset(
    "msgspec msgpack sqlalchemy alembic litestar uvicorn uvloop psycopg jinja2 numpy asyncio"
    " logging dataclasses inspect subprocess uuid email http urllib.parse urllib.request ssl"
    " hashlib hmac ctypes fractions decimal pathlib shutil tempfile tomllib concurrent"
    " multiprocessing threading difflib traceback shlex csv sqlite3 random secrets statistics"
    " zoneinfo calendar pydoc".split()
)
START = "import sys; from fairbank.cli.main import run; sys.exit(run(sys.argv[1:]))"
EVERYDAY = (
    "--help",
    "balance --help",
    "-V",
    "",
    "balance",
    "balance --json",
    "jobs -a",
    "statement 1",
    "usage",
)


def run_with_importtime(words: list[str], bank: Bank) -> tuple[set[str], float]:
    """Return the modules that a command imported, and the CPU milliseconds that it took."""
    before = getrusage(RUSAGE_CHILDREN)
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", START, *words],
        env={
            **os.environ,
            "FAIRBANK_SERVER": bank.unix,
            "HOME": "/nowhere",
            "XDG_CONFIG_HOME": "/nowhere",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    after = getrusage(RUSAGE_CHILDREN)
    assert process.returncode == 0, process.stderr[-2000:]
    imported = {
        line.split("|")[2].strip()
        for line in process.stderr.splitlines()
        if line.startswith("import time:")
    }
    return imported, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def interpreter_modules() -> set[str]:
    """Return the modules that Python imports by itself, which depend on the environment."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", ""], capture_output=True, text=True, check=True
    )
    return {
        line.split("|")[2].strip()
        for line in process.stderr.splitlines()
        if line.startswith("import time:")
    }


@pytest.mark.parametrize("words", EVERYDAY)
def test_nothing_heavy_is_imported(
    words: str, bank: Bank, record_property: Callable[[str, object], None]
) -> None:
    imported, milliseconds = run_with_importtime(words.split(), bank)
    record_property("cpu_ms", round(milliseconds, 1))
    print(f"fairbank {words}: {milliseconds:.0f} ms of CPU, the timing of imports included")
    heavy = {
        name
        for name in imported - interpreter_modules()
        if any(name == module or name.startswith(f"{module}.") for module in FORBIDDEN)
    }
    assert heavy == set()
    packages = {".".join(name.split(".")[:2]) for name in imported if name.startswith("fairbank.")}
    names = ("bank", "cli", "client_file", "core", "report", "rest", "unix_users")
    ours = {f"fairbank.{name}" for name in names}
    assert packages <= ours
    of_bank = {name for name in imported if name.startswith("fairbank.bank.")}
    assert of_bank <= {"fairbank.bank.outlook"}, "the outlook's names only, no rules"


def test_help_opens_no_connection(bank: Bank) -> None:
    imported, _ = run_with_importtime(["--help"], bank)
    assert not imported & {
        "socket",
        "json",
        "argparse",
        "fairbank.rest.client",
        "fairbank.cli.commands.bank.balance",
    }


# Importing these would take as long as the simulation of a small trace.
HEAVY = frozenset("msgspec numpy inspect asyncio sqlalchemy".split())


def test_simulation_without_a_bank_imports_no_bank_library(tmp_path: Path) -> None:
    trace = tmp_path / "one.swf"
    trace.write_text("; MaxProcs: 8\n1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n")
    own = (
        "import sys; from fairbank.cli.main import run; print(run(sys.argv[1:]), *sys.modules,"
        " file=sys.stderr)"
    )
    words = [sys.executable, "-c", own, "simulate", str(trace)]
    process = subprocess.run(words, capture_output=True, text=True, check=True)
    succeeded, *imported = process.stderr.split()
    assert succeeded == "0"
    assert not HEAVY & set(imported)


def test_prolog_command_imports_no_numpy() -> None:
    """It runs before each job of a Slurm without the plug-in."""
    own = (
        "import sys, fairbank.cli.commands.slurm.slurm, fairbank.slurm.prolog; print(*sys.modules)"
    )
    imported = subprocess.run(
        [sys.executable, "-c", own], capture_output=True, text=True, check=True
    )
    assert "numpy" not in imported.stdout.split()
