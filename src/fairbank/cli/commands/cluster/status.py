"""Command `fairbank cluster status`: daemons, nodes, jobs and bank of the cluster."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.cluster.directory import find_directory
from fairbank.cli.commands.cluster.up import credit_text
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.exit_codes import FOUND, NO_ANSWER
from fairbank.cli.framework.options import add_nothing
from fairbank.core.errors import FairbankError
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.cli.framework.context import Context
    from fairbank.wlm.core.settings import WlmSettings

_ANSWER_SECONDS = 5.0
_OF_NODE = ("state", "gres", "control_groups", "device_groups", "memory_limits")


def _status(context: Context, options: Namespace) -> int:
    from fairbank.cli.commands.cluster.settings_files import read_wlm_settings

    directory = find_directory()
    directory.check_exists()
    state = directory.supervisor()
    problems = [daemon for daemon in state.get("daemons", ()) if daemon["pid"] is None]
    settings, where = None, str(directory.path)
    try:
        settings = read_wlm_settings(directory.settings)[0]
    except FairbankError as error:  # the daemons may run with the settings of their start
        problems.append(error)
        last = [("settings", f"{error.message}; {error.remedy}")]
    else:
        where = f"{settings.cluster.cluster_name} in {where}"
        last = [("credit", _credit_text(context, directory, settings))]
    up = "up" if state else "not up; start it: fairbank cluster up"
    lines = [("cluster", f"{where}: {up}")]
    lines += _daemon_lines(context, state)
    if state:
        try:
            lines += _queue_lines(directory, settings)
            problems += [text for _, text in lines if "NOT_RESPONDING" in text]
        except FairbankError as error:
            problems.append(error)
            lines.append(("controller", f"{error.message}"))
    elif left := directory.left_jobs():
        lines.append(("jobs", f"{', '.join(left)} go on, although the supervisor was killed"))
    lines += last
    for name, text in lines:
        context.print_text(f"{name:<12}{plain(text)}")
    if not state:
        return NO_ANSWER
    return FOUND if problems else 0


def _daemon_lines(context: Context, state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rows = [{"name": "supervisor", **state}, *state["daemons"]] if state else []
    for row in rows:
        since = datetime.fromtimestamp(row["since"], context.zone).strftime("%Y-%m-%dT%H:%M:%S")
        text = f"pid {row['pid']} since {since}" if row["pid"] else "does not run"
        if row.get("end"):
            text += f"; restarts: {row['restarts']}, the last one because it {row['end']}"
        yield row["name"], text


def _queue_lines(
    directory: ClusterDirectory, settings: WlmSettings | None
) -> Iterator[tuple[str, str]]:
    from fairbank.wlm.client.connection import Controller
    from fairbank.wlm.client.requests import rows

    with Controller(directory.path) as controller:
        nodes = rows(controller, "nodes", _OF_NODE, seconds=_ANSWER_SECONDS).rows or []
        jobs = rows(
            controller, "jobs", ["state"], matching={"tasks": True}, seconds=_ANSWER_SECONDS
        )
    for name, lines in (("nodes", nodes), ("jobs", jobs.rows or [])):
        states = Counter(str(row[0]) for row in lines)
        yield name, ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    if settings is not None and nodes:
        with_gpus = next((row for row in nodes if row[1]), nodes[0])
        yield from _machine_lines(with_gpus, settings)


def _machine_lines(node: Sequence[Any], settings: WlmSettings) -> Iterator[tuple[str, str]]:
    """Yield what the node daemon can do on this host; nothing if the controller does not know."""
    *_, has_groups, has_devices, memory = node
    if has_groups is None:
        return
    yield "tracking", "by control group" if has_groups else "as descendants of the step daemon"
    yield "memory", f"kept by {memory}" if memory else "not limited"
    if count := sum(gpu.number for one in settings.nodes for gpu in one.gpus):
        control = (
            "a job cannot open those of others"
            if has_devices
            else "variables alone keep jobs off those of others, which they could open"
        )
        yield "GPUs", f"{count}; {control}"


def _credit_text(context: Context, directory: ClusterDirectory, settings: WlmSettings) -> str:
    from fairbank.setup.cluster_bank import PROJECT, find_year

    if not settings.bank.socket:
        return "no bank: jobs need no credit"
    allocation = find_year(directory.bank_settings)
    if allocation is None:
        return f"project {PROJECT} has no credit; fairbank cluster up grants some"
    return f"project {PROJECT}, {credit_text(context, allocation)}"


STATUS = host_command(
    "show daemons, nodes, jobs and bank; 8 when something is wrong, 6 when it is not up",
    (
        "{}",
        "{} || fairbank cluster up             start it unless it is up",
        "FAIRBANK_CLUSTER=/var/tmp/queue {}    of a cluster in another directory",
    ),
    add_nothing,
    _status,
)
