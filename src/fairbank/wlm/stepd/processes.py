"""Processes of this host, as /proc shows them."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """Process at one moment. `start` is in clock ticks after the boot, `resident` in pages.

    `cpu_ticks` is the CPU time of the process and of the children for which it has waited.
    """

    pid: int
    is_zombie: bool
    parent: int
    session: int
    start: int
    cpu_ticks: int
    virtual_bytes: int
    resident: int
    is_stopped: bool = False


@cache
def boot_id() -> str:
    """Return the identity of this boot: process ids and start times are unique within one."""
    # The codec of ASCII would be one more module, which each step daemon imports.
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        return file.read().strip()


def read_process(pid: int) -> Process | None:
    """Return a process; None if there is none with this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name of the program stands in parentheses and may contain any character.
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(
        pid,
        is_zombie=fields[0] == b"Z",
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        cpu_ticks=sum(map(int, fields[11:15])),
        virtual_bytes=int(fields[20]),
        resident=int(fields[21]),
        is_stopped=fields[0] in b"Tt",
    )


def start_time(pid: int) -> int:
    """Return the start time of a process. Raises ProcessLookupError."""
    process = read_process(pid)
    if process is None:
        raise ProcessLookupError(f"no process {pid}")
    return process.start


def process_table() -> dict[int, Process]:
    """Return all processes that this process can see, by their numbers."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return {process.pid: process for pid in pids if (process := read_process(pid)) is not None}


def descendants(ancestors: Collection[int], table: Mapping[int, Process]) -> list[Process]:
    """Return the children of processes, their children, and so on."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    result = [child for pid in ancestors for child in children.get(pid, ())]
    for process in result:  # grows while it is read
        result += children.get(process.pid, ())
    return result


def send_signal(processes: Iterable[Process], number: int) -> None:
    """Send a signal to processes, but to no other that has got the number of one by now."""
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            continue  # it has ended
        try:
            now = read_process(process.pid)
            if now is not None and now.start == process.start:
                signal.pidfd_send_signal(handle, number)
        except OSError:
            pass  # it ended just now, or has changed its user
        finally:
            os.close(handle)


def oom_kills(group: str) -> int:
    """Return how many processes of a control group the kernel has killed because of memory.

    0 for no group. Version 2 has the file memory.events, version 1 memory.oom_control.
    """
    for name in ("memory.events", "memory.oom_control") if group else ():
        try:
            with open(f"{group}/{name}", "rb", buffering=0) as file:
                lines = file.read().splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith(b"oom_kill "))
        except OSError:
            continue
    return 0
