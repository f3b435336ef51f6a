"""Command `fairbank cluster down`: end the daemons, and with --now the running jobs."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fairbank.cli.commands.cluster.directory import find_directory
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option
from fairbank.core.errors import Conflict, FairbankError, NotFound, Unavailable
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.wlm.client.connection import Controller

CLOSED = "closed_partitions.json"
_BUSY = ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED")
_NAMED_MAX = 10
_ATTEMPTS, _RESTART_SECONDS = 2, 10.0
STORAGE_SECONDS = 10.0
"""Longest time that the controller may be unable to store its state."""
_ENDING_SECONDS = 60.0
"""Time for epilogs, after KillWait and UnkillableStepTimeout."""


def _add(parser: Parser) -> None:
    add_option(parser, "--now", "end the running jobs first; pending jobs stay in the queue")


def _down(context: Context, options: Namespace) -> int:
    from fairbank.wlm.client.connection import Controller

    directory = find_directory()
    directory.check_exists()
    if not directory.is_up():
        directory.remove_traces()
        if left := directory.left_jobs():
            names = ", ".join(left[:_NAMED_MAX])
            raise Conflict(
                f"the cluster is not up, but {_count(left)} on: {names}",
                remedy="fairbank cluster up; then wait, or fairbank cluster down --now",
            )
        context.print_text(f"the cluster in {directory.path} is not up")
        return 0
    for attempt in range(_ATTEMPTS):
        if attempt:
            _await_controller(directory)
        try:
            with Controller(directory.path) as controller:
                _check_jobs(controller, directory, now=options.now)
            break
        except Unavailable as error:
            if error.field != "controller":  # it answers, and could end the jobs later
                raise
            silence = error.message
    else:
        # It may be half down: what runs is seen without the controller.
        if (left := directory.left_jobs()) and not options.now:
            raise Conflict(
                f"{_count(left)}: {', '.join(left[:_NAMED_MAX])}; and there is {silence}",
                remedy="let them go on without the cluster: fairbank cluster down --now",
            )
        what = "Running jobs go on" if left else "No job runs"
        context.note(f"{what}: {silence}")
    directory.stop()
    context.print_text(f"the cluster in {directory.path} is down")
    return 0


def _check_jobs(controller: Controller, directory: ClusterDirectory, *, now: bool) -> None:
    """Raise Conflict if jobs run, or end them."""
    jobs = _busy_jobs(controller)
    if jobs and not now:
        raise Conflict(
            f"{_count(jobs)}: {_names(jobs)}",
            remedy="wait for their end, or end them: fairbank cluster down --now",
        )
    if jobs:
        _repeat(_close_partitions, controller, directory.path / CLOSED)
        _end_jobs(controller, directory)


def _await_controller(directory: ClusterDirectory) -> None:
    """Wait some seconds for a controller: its supervisor starts one that has died again."""
    from fairbank.rest.server.unix_socket import is_listening

    deadline = time.monotonic() + _RESTART_SECONDS
    while not is_listening(directory.controller_socket) and time.monotonic() < deadline:
        time.sleep(0.1)


def _busy_jobs(controller: Controller) -> dict[str, str]:
    """Return id and name of the jobs with processes; tasks of an array have ids such as 7_3."""
    from fairbank.wlm.client.requests import rows

    columns = ["job_id", "name", "array_job", "task"]
    jobs = rows(controller, "jobs", columns, matching={"states": _BUSY}).rows or ()
    # The last task of an array that starts has the id of the array.
    return {
        str(number) if task is None else f"{array}_{task}": name
        for number, name, array, task in jobs
    }


def _count(jobs: Collection[str]) -> str:
    return "1 job runs" if len(jobs) == 1 else f"{len(jobs)} jobs run"


def _names(jobs: dict[str, str]) -> str:
    named = [f"{number} ({plain(name[:40])})" for number, name in jobs.items()]
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    return ", ".join(named[:_NAMED_MAX]) + more


def _close_partitions(controller: Controller, file: Path) -> None:
    """Set the partitions DOWN, or pending jobs would start on the free nodes."""
    from fairbank.wlm.client.requests import rows

    partitions = rows(controller, "partitions", ["name", "state"]).rows or ()
    names = [name for name, state in partitions if state == "UP"]
    new = file.with_name(f".{file.name}")
    try:
        # A `down --now` that did not end the cluster has closed others.
        closed = json.loads(file.read_bytes()) if file.exists() else []
        new.write_text(json.dumps([*dict.fromkeys([*closed, *names])]))
        new.replace(file)  # no part of it stays on a full disk
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Unavailable(f"cannot write {file}: {error.strerror}") from error
    for name in names:
        _set_state(controller, name, "DOWN")


def open_partitions(directory: ClusterDirectory) -> None:
    """Set the partitions UP that `down --now` has set DOWN."""
    from fairbank.wlm.client.connection import Controller

    file = directory.path / CLOSED
    if file.exists():
        with Controller(directory.path) as controller:
            for name in json.loads(file.read_bytes()):
                with suppress(NotFound):  # it is no longer in the settings
                    _set_state(controller, name, "UP")
        file.unlink()


def _set_state(controller: Controller, name: str, state: str) -> None:
    fields = {"PartitionName": name, "State": state}
    controller.request("update", entity="partition", fields=fields)


def _repeat(change: Callable[..., None], *arguments: object) -> None:
    """Make a change, again for some seconds if the state cannot be stored. Raises Unavailable."""
    deadline = time.monotonic() + STORAGE_SECONDS
    while True:
        try:
            return change(*arguments)
        except Unavailable as error:
            if error.field == "controller" or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _end_jobs(controller: Controller, directory: ClusterDirectory) -> None:
    """Cancel the jobs and wait for their end. Raises Conflict if some cannot be ended."""
    from fairbank.cli.commands.cluster.settings_files import read_wlm_settings
    from fairbank.wlm.core.settings import JobSettings

    try:
        settings = read_wlm_settings(directory.settings)[0].jobs
    except FairbankError:  # a file that was broken since the start must not keep the cluster up
        settings = JobSettings()
    seconds = settings.kill_wait + settings.unkillable_step_timeout + _ENDING_SECONDS
    deadline = time.monotonic() + seconds
    canceled: set[str] = set()
    while jobs := _busy_jobs(controller):
        # A job may have started before the partitions were closed.
        _repeat(_cancel, controller, jobs, canceled)
        if time.monotonic() > deadline:
            what = f"{_count(jobs)} on: {_names(jobs)}"
            raise Conflict(what, remedy="scontrol show node shows processes that cannot be ended")
        time.sleep(0.1)


def _cancel(controller: Controller, jobs: Iterable[str], canceled: set[str]) -> None:
    """Cancel the jobs that are not in a set, and add them. Raises Unavailable if some are not."""
    from fairbank.wlm.client.requests import change_jobs

    if missing := [job for job in jobs if job not in canceled]:
        results = change_jobs(controller, "cancel", missing)
        refused = [error for _, error in results if isinstance(error, Unavailable)]
        canceled |= {job for job, error in results if not isinstance(error, Unavailable)}
        if refused:
            raise refused[0]


DOWN = host_command(
    "end the queue of this host: no process, socket or link is left",
    (
        "{}",
        "{} --now                         end the running jobs first",
        "FAIRBANK_CLUSTER=/var/tmp/queue {}    of a cluster in another directory",
    ),
    _add,
    _down,
)
