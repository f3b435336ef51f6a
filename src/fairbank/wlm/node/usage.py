"""RunUsage of running steps: CPU time and memory of all their processes, from /proc.

psutil would give the same fields; it is not needed for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.wlm.protocol.messages import RunUsage
from fairbank.wlm.stepd.processes import PAGE_BYTES, TICKS_PER_SECOND, Process, descendants


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
    resident = sum(process.resident for process in processes) * PAGE_BYTES // 1_024
    virtual = sum(process.virtual_bytes for process in processes) // 1_024
    return RunUsage(
        cpu_seconds=max(before.cpu_seconds, ended_cpu_seconds + ticks / TICKS_PER_SECOND),
        resident_kib=resident,
        resident_max_kib=max(before.resident_max_kib, resident),
        virtual_kib=virtual,
        virtual_max_kib=max(before.virtual_max_kib, virtual),
    )


def final_usage(cpu_seconds: float, resident_max_kib: int, before: RunUsage) -> RunUsage:
    """Return the usage of a step that has ended.

    Args:
        cpu_seconds: CPU time of all its processes.
        resident_max_kib: largest resident memory of one of them.
        before: the last sample.
    """
    return RunUsage(
        cpu_seconds=max(before.cpu_seconds, cpu_seconds),
        resident_max_kib=max(before.resident_max_kib, resident_max_kib),
        virtual_max_kib=before.virtual_max_kib,
    )
