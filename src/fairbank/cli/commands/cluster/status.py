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
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.cli.framework.context import Context
    from fairbank.wlm.core.settings import WlmSettings
    from fairbank.wlm.protocol.messages import Registration

_ANSWER_SECONDS = 5.0


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
        try:
            last = [("credit", _credit_text(context, directory, settings))]
        except FairbankError as error:
            problems.append(error)
            last = [("credit", f"{error.message}; {error.remedy}")]
    up = "up" if state else "not up; start it: fairbank cluster up"
    lines = [("cluster", f"{where}: {up}")]
    lines += _daemon_lines(context, state)
    if state:
        try:
            lines += _queue_lines(directory)
            if settings is not None:
                lines += _node_lines(_registration(directory, settings), settings)
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


def _queue_lines(directory: ClusterDirectory) -> Iterator[tuple[str, str]]:
    from fairbank.wlm.client.connection import Controller
    from fairbank.wlm.client.requests import rows

    with Controller(directory.path) as controller:
        for of in ("nodes", "jobs"):
            matching = {"tasks": of == "jobs"}
            lines = rows(controller, of, ["state"], matching=matching, seconds=_ANSWER_SECONDS).rows
            states = Counter(str(state) for (state,) in lines or ())
            yield of, ", ".join(f"{count} {state}" for state, count in states.items()) or "none"


def _node_lines(node: Registration, settings: WlmSettings) -> Iterator[tuple[str, str]]:
    """Yield what the node daemon can do on this host."""
    from fairbank.wlm.node.devices.gpus import detect_gpus

    by_group = "by control group" if node.control_groups else "as descendants of the step daemon"
    yield "tracking", by_group
    yield "memory", f"kept by {node.memory_limits}" if node.memory_limits else "not limited"
    if count := sum(gpu.number for one in settings.nodes for gpu in one.gpus):
        if not detect_gpus(settings.cluster.gpu_root):
            control = "this host has none, so jobs get their numbers alone"
        elif node.device_groups:
            control = "a job cannot open those of others"
        else:
            control = "variables alone keep jobs off those of others, which they could open"
        yield "GPUs", f"{count}; {control}"


def _registration(directory: ClusterDirectory, settings: WlmSettings) -> Registration:
    """Return what the node daemon says of its first node with GPUs. Raises Unavailable."""
    import socket

    from fairbank.wlm.protocol.frames import FrameDecoder, FrameError
    from fairbank.wlm.protocol.messages import (
        Hello,
        PollNode,
        Registration,
        decode_message,
        encode_message,
    )

    node = next((node for node in settings.nodes if node.gpus), settings.nodes[0])
    path = directory.path / "nodes" / f"{node.name}.sock"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(str(path))
            connection.sendall(encode_message(Hello(role="command")))
            connection.sendall(encode_message(PollNode(), 1))
            decoder = FrameDecoder()
            while data := connection.recv(65_536):
                for frame in decoder.decode(data):
                    message = decode_message(frame)
                    if isinstance(message, Registration):
                        return message
    except (OSError, FrameError) as error:
        raise Unavailable(f"no answer from the node daemon: {error}") from error
    raise Unavailable("the node daemon closed the connection")


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
