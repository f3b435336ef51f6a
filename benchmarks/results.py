"""Results as JSON: one file per claim, with the machine that measured it."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import msgspec

from benchmarks.bank import postgres_installation
from benchmarks.measure import Table
from fairbank.store.sqlite.driver import VERSION

RESULTS = Path(__file__).parent / "results"
SHORT = RESULTS / "short"


class Machine(msgspec.Struct, frozen=True):
    """Machine and date. `busy`: number of runnable processes when the measurement began."""

    on: str
    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    sqlite: str
    postgresql: str
    busy: float


class Claim(msgspec.Struct, frozen=True):
    """Tables of one claim."""

    name: str
    machine: Machine
    tables: list[Table]


def save_claim(claim: Claim, folder: Path) -> Path:
    """Write the results of a claim, replacing older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{claim.name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(claim), indent=1) + b"\n")
    return path


def load_claim(name: str, folder: Path) -> Claim | None:
    """Return the last results of a claim, or None."""
    path = folder / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Claim) if path.exists() else None


def this_machine() -> Machine:
    return Machine(
        on=time.strftime("%Y-%m-%d", time.gmtime()),
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        sqlite=".".join(map(str, VERSION)),
        postgresql=_postgresql(),
        busy=round(os.getloadavg()[0], 1),
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _postgresql() -> str:
    installation = postgres_installation()
    command = [str(installation.home / "bin" / "postgres"), "--version"]
    version = subprocess.run(
        command, env=dict(installation.environment), capture_output=True, text=True, check=True
    )
    return version.stdout.split()[2]
