"""Usage of running steps: CPU time and memory of all their processes, from /proc.

psutil would give the same fields; it is not needed for them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from fairbank.wlm.protocol.messages import RunUsage
from fairbank.wlm.stepd.processes import (
    PAGE_BYTES,
    TICKS_PER_SECOND,
    Process,
    descendants,
    read_process,
)


def sample_usage(
    daemon: int, ended_cpu_seconds: float, table: Mapping[int, Process], before: RunUsage
) -> RunUsage:
    """Return the usage of a step.

    The caller reads `ended_cpu_seconds` before the table. A process that ends between is then
    missing from this sample, instead of being counted twice, so the sum is never too high.

    Args:
        daemon: process id of the step daemon.
        ended_cpu_seconds: CPU time of the processes that have ended, as the step daemon says.
        table: all processes.
        before: the sample before, for the maxima.
    """
    processes = descendants([daemon], table)
    ticks = sum(process.cpu_ticks for process in processes)
    resident = resident_bytes(processes) // 1_024
    virtual = sum(process.virtual_bytes for process in processes) // 1_024
    return msgspec.structs.replace(
        before,
        cpu_seconds=max(before.cpu_seconds, ended_cpu_seconds + ticks / TICKS_PER_SECOND),
        resident_max_kib=max(before.resident_max_kib, resident),
        virtual_max_kib=max(before.virtual_max_kib, virtual),
    )


def resident_bytes(processes: Iterable[Process]) -> int:
    """Return the resident memory of processes. What they share counts for each of them."""
    return sum(process.resident for process in processes) * PAGE_BYTES


def proportional_bytes(processes: Iterable[Process]) -> int:
    """Return the memory of processes, with what they share counted once.

    The kernel adds it up page by page, so it takes longer than `resident_bytes`.
    """
    return sum(_proportional_bytes(process) for process in processes)


def _proportional_bytes(process: Process) -> int:
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as file:
            sizes = (line.split()[1] for line in file if line.startswith("Pss:"))
            return int(next(sizes, 0)) * 1_024
    except OSError:  # it has ended, others may not read it, or the kernel has no such file
        now = read_process(process.pid)
        return resident_bytes([now] if now is not None and now.start == process.start else [])


def final_usage(cpu_seconds: float, resident_max_kib: int, before: RunUsage) -> RunUsage:
    """Return the usage of a step that has ended.

    Args:
        cpu_seconds: CPU time of all its processes.
        resident_max_kib: largest resident memory of one of them.
        before: the last sample.
    """
    return msgspec.structs.replace(
        before,
        cpu_seconds=max(before.cpu_seconds, cpu_seconds),
        resident_max_kib=max(before.resident_max_kib, resident_max_kib),
    )


def with_gpu_use(usage: RunUsage, busy: Collection[float], seconds: float) -> RunUsage:
    """Return the usage of a step after some seconds, for these parts of which its GPUs were busy.

    GPUs of which that is not known, or counts for another step, are not among them.
    """
    return msgspec.structs.replace(
        usage,
        gpu_busy_seconds=usage.gpu_busy_seconds + sum(busy) * seconds,
        gpu_seconds=usage.gpu_seconds + len(busy) * seconds,
        sampled_seconds=usage.sampled_seconds + seconds,
    )


class HostState(NamedTuple):
    """Resources and state of a host. Memory and disk are in MiB, `boot_time` in seconds since 1970.

    `cpus` are those that this process may use, `tmp` is the size of the disk of /tmp, and `load` is
    the mean number of running processes in 5 minutes.
    """

    cpus: int
    memory: int
    free_memory: int
    tmp: int
    load: float
    boot_time: float
    system: str
    machine: str


def part_of(host: int, part: int | None, before: int | None) -> int:
    """Return what a node has of a resource: its part grows and shrinks with the host.

    A change by up to 1 % does not count: the kernel keeps more or less memory for itself at each
    boot.

    Args:
        host: what the host has now.
        part: the node's part; None: all of it.
        before: what the host had when the part was chosen; None: not known.
    """
    if part is None:
        return host
    if before is None or abs(host - before) * 100 <= before:
        return part
    return part * host // before


def read_host() -> HostState:
    """Return the state of this host."""
    system = os.uname()
    return HostState(
        cpus=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES // 2**20,
        free_memory=os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES // 2**20,
        tmp=shutil.disk_usage("/tmp").total // 2**20,  # noqa: S108 - its size only
        load=os.getloadavg()[1],
        boot_time=time.time() - time.clock_gettime(time.CLOCK_BOOTTIME),
        system=f"{system.sysname} {system.release}",
        machine=system.machine,
    )
