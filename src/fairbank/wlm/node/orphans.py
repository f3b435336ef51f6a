"""Processes of a run without a step daemon: it was killed, or a Prolog was interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from fairbank.wlm.node.control_group import group_processes
from fairbank.wlm.stepd.processes import Process, descendants, process_table, send_signal
from fairbank.wlm.stepd.step import StepStart, read_step
from fairbank.wlm.stepd.task import MARK

_PAUSE_SECONDS = 0.05, 1.0  # first and longest pause between two searches


def find_orphans(
    directory: Path, start: StepStart | None, table: Mapping[int, Process]
) -> list[Process]:
    """Return the living processes of a run.

    With a control group these are its processes. Besides, there are three marks: a variable in the
    environment that a process was started with, the session of the script, and being a descendant
    of a process with one of these. Without a group, a process that has removed all three is not
    found.

    Args:
        directory: directory of the run, the value of the variable.
        start: identity of the script, if it was started in this boot.
        table: all processes.
    """
    entry = b"%b=%b" % (MARK.encode(), os.fsencode(directory))
    marked = {pid for pid in table if entry in _environment(pid)}
    marked |= table.keys() & group_processes(group_of(directory))
    leaders = set(marked)
    if start is not None:
        leaders.add(start.script)
        script = table.get(start.script)
        if script is not None and script.start == start.script_start:
            marked.add(start.script)
    # Only sessions with a marked process: a number may belong to another session by now.
    sessions = {table[pid].session for pid in marked} & leaders
    marked |= {process.pid for process in table.values() if process.session in sessions}
    marked |= {process.pid for process in descendants(marked, table)}
    return [table[pid] for pid in sorted(marked) if not table[pid].is_zombie]


def group_of(directory: Path) -> str:
    """Return the directory of the control group of a run; empty if it has none."""
    try:
        return read_step(str(directory)).group
    except OSError:
        return ""


def device_group_of(directory: Path) -> str:
    """Return the directory of the group with the devices of a run; empty if it has none."""
    try:
        return read_step(str(directory)).devices
    except OSError:
        return ""


def run_memory_group(directory: Path) -> str:
    """Return the directory of the group that limits the memory of a run; empty if it has none."""
    try:
        group = read_step(str(directory)).memory_group
    except OSError:
        return ""
    return str(Path(group).parent) if group else ""


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or belongs to another user


async def end_orphans(directory: Path, start: StepStart | None, kill_wait: float) -> None:
    """End the processes of a run, as a step daemon does, and return when none is left."""
    kill_at = time.monotonic() + kill_wait
    is_first, pause = True, _PAUSE_SECONDS[0]
    while orphans := find_orphans(directory, start, process_table()):
        if is_first:
            send_signal(orphans, signal.SIGTERM)
            send_signal(orphans, signal.SIGCONT)
        elif time.monotonic() >= kill_at:
            send_signal(orphans, signal.SIGKILL)
        is_first = False
        await asyncio.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS[1])
