"""seff: CPUs and memory that a job used of what it was given, in the form of seff 2.1."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from fairbank.core.time import show_duration
from fairbank.core.tres import parse_counts
from fairbank.report.slurm.sacct import AccountingLine, GpuUse
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import read_command_line
from fairbank.wlm.commands.tables.rows import fetch
from fairbank.wlm.commands.tables.sacct import OWN_EXIT_CODE

USAGE = "JOB"
_WRONG_USAGE, _NOT_FOUND = 1, 2
_FIELDS = (
    "job_id", "label", "cluster", "user", "group", "state", "exit_code", "cpus", "allocated_nodes",
    "step", "elapsed", "total_cpu", "resident", "allocated_tres", "memory_is_per_cpu",
    "gpu_use",
)  # fmt: skip
_UNITS = "KMGTPE"
_RUNNING = (
    "WARNING: Efficiency statistics can only be obtained after the job has ended as seff tool is"
    " based on the accounting database data."
)


def run(name: str, words: Sequence[str]) -> int:
    """Print the usage of a job, and return the exit code."""
    line = read_command_line(name, USAGE, (), words)
    if line is None:
        return 0
    if len(line.words) != 1:
        print(f"Usage: {name} {USAGE}")
        return _WRONG_USAGE
    with Controller() as controller:
        wanted = {"jobs": line.jobs(), "steps": True}
        rows = fetch(controller, "accounting", AccountingLine, _FIELDS, wanted).rows
    if not rows:
        print("Job not found.", file=sys.stderr)
        return _NOT_FOUND
    last = max(at for at, row in enumerate(rows) if not row.step)
    memory = max((row.resident[0] for row in rows[last + 1 :] if row.resident), default=0)
    uses = [GpuUse(*row.gpu_use) for row in rows[last + 1 :] if row.gpu_use]
    print(*_lines(rows[last], memory / 1_024, uses), sep="\n")
    return 0


def _lines(row: Any, memory: float, gpu_uses: Sequence[GpuUse]) -> Iterator[str]:
    """Yield the lines about a run. `memory` in KiB is that of the step that used most."""
    cpus, nodes = row.cpus or 1, row.allocated_nodes or 1
    code = f" (exit code {row.exit_code[0] if row.state in OWN_EXIT_CODE else 0})"
    yield f"Job ID: {row.job_id}"
    if row.label != str(row.job_id):
        yield f"Array Job ID: {row.label}"
    yield f"Cluster: {row.cluster}"
    yield f"User/Group: {row.user}/{row.group}"
    yield f"State: {row.state}{'' if row.state in ('PENDING', 'RUNNING') else code}"
    yield from (
        [f"Cores: {cpus}"] if cpus == 1 else [f"Nodes: {nodes}", f"Cores per node: {cpus // nodes}"]
    )
    if row.state == "PENDING":
        yield "Efficiency not available for jobs in the PENDING state."
        return
    used, given = ((row.total_cpu or 0) + 500) // 1_000, row.elapsed * cpus
    yield f"CPU Utilized: {show_duration(used)}"
    yield f"CPU Efficiency: {_percent(used, given)} of {show_duration(given)} core-walltime"
    yield f"Job Wall-clock time: {show_duration(row.elapsed)}"
    # Of a run that never started there is none.
    allocated = int(parse_counts(row.allocated_tres or "mem=0").get("mem", 0)) * 1_024
    unit, parts = ("core", cpus) if row.memory_is_per_cpu else ("node", nodes)
    yield f"Memory Utilized: {_size(memory)}"
    share = f"{_size(allocated)} ({_size(allocated / parts)}/{unit})"
    yield f"Memory Efficiency: {_percent(memory, allocated)} of {share}"
    if gpus := int(parse_counts(row.allocated_tres or "").get("gres/gpu", 0)):
        yield from _gpu_lines(gpus * row.elapsed, gpu_uses)
    if row.state in ("RUNNING", "SUSPENDED"):
        yield _RUNNING


def _gpu_lines(given: int, uses: Sequence[GpuUse]) -> Iterator[str]:
    """Yield the lines about GPUs, which a run was given for so many seconds together."""
    busy, known = sum(use.busy for use in uses), sum(use.known for use in uses)
    if not known:
        yield "GPU Efficiency: not known (it was not measured)"
        return
    measured = f"{show_duration(round(known))} measured, {show_duration(given)} gpu-walltime"
    yield f"GPU Utilized: {show_duration(round(busy))}"
    yield f"GPU Efficiency: {_percent(busy, known)} of {measured}"


def _percent(used: float, given: float) -> str:
    return f"{used / given * 100 if given else 0:.2f}%"


def _size(kibibytes: float) -> str:
    """Return a size with the unit in which it is at least 1."""
    power = 0
    while kibibytes >= 1_024 and power < len(_UNITS) - 1:
        kibibytes, power = kibibytes / 1_024, power + 1
    return f"{kibibytes:.2f} {_UNITS[power] if kibibytes else 'M'}B"
