"""Files that `fairbank cluster up` writes: settings of the workload manager, node daemon, agent and
supervisor.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairbank
from fairbank.core.settings_file import toml_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.wlm.config.default_file import MachineSize
    from fairbank.wlm.core.settings import WlmSettings

_RELEASE_SECONDS = 10
"""Seconds between two rounds that release held jobs for which there is credit again."""
# -E: a module in the user's PYTHONPATH may have the name of one of Python's own. -S: to look for
# packages takes Python 2 to 3 ms, and the commands import only this one. The modules alone would
# start many collections of garbage, which find nothing and take 1 ms.
_COMMANDS = """\
{first_line}
import sys

sys.path.append({packages!r})

from {client} import run_in_fork

run_in_fork({socket!r})

import gc

gc.set_threshold(100_000)

from fairbank.wlm.commands.program import main

main()
"""


_FIRST_LINE_MAX = 127
"""Longest first line of a script in bytes that Linux 4 reads."""


def first_line(python: str) -> str:
    """Return the first line of a script that starts this Python; with a shell if it has to."""
    line = f"#!{python} -EPS"
    if len(line.encode()) <= _FIRST_LINE_MAX and not re.search(r"\s", python):
        return line
    # For the shell the second line starts Python, for Python it is a text.
    return f"#!/bin/sh\n'''exec' {shlex.quote(python)} -EPS \"$0\" \"$@\"\n' '''"


def read_wlm_settings(path: Path, text: str | None = None) -> tuple[WlmSettings, Sequence[str]]:
    """Return the settings of a wlm.toml, and the notes on them.

    Args:
        path: the file.
        text: content that it does not have yet; None: the file's.
    """
    from fairbank.wlm.config.loader import load_settings

    def read(name: str) -> bytes:
        new = text is not None and name == str(path)
        return (text or "").encode() if new else Path(name).read_bytes()

    return load_settings(str(path), read)


def user_settings(file: str, bank: str) -> str:
    """Return the wlm.toml for settings of the user: a wlm.toml, or a slurm.conf.

    Args:
        bank: tables to add if they name no bank; empty: none.
    """
    from fairbank.core.settings_file import decode_text, parse_toml, read_whole

    if not file.endswith(".toml"):
        return f"slurm_conf = {toml_string(os.path.abspath(file))}\n\n{bank}"
    with open(file, "rb") as opened:
        content = read_whole(opened, file, field="--config")
    has_bank = "bank" in parse_toml(content, file, field="--config")
    return decode_text(content, file, field="--config") + ("" if has_bank else f"\n{bank}")


def machine_size() -> MachineSize:
    """Return the size of this host, as far as this process may use it."""
    from fairbank.wlm.config.default_file import MachineSize
    from fairbank.wlm.node.devices.gpus import detect_gpus
    from fairbank.wlm.node.usage import read_host

    host = read_host()
    fields: dict[str, set[str]] = {}
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), set()).add(value.strip())
    sockets = len(fields.get("physical id", ())) or 1
    threads = 1
    siblings, cores = fields.get("siblings", set()), fields.get("cpu cores", set())
    if len(siblings) == len(cores) == 1:  # all sockets are alike
        threads = max(int(*siblings) // int(*cores), 1)
    if host.cpus != os.cpu_count() or host.cpus % (sockets * threads):
        sockets = threads = 1  # a part of the host
    gpus = Counter(gpu.type for gpu in detect_gpus())
    return MachineSize(host.cpus, host.memory, sockets, threads, gpus=tuple(gpus.items()))


def write_node_settings(
    directory: ClusterDirectory, settings: WlmSettings, *, again: bool
) -> list[Path]:
    """Write the settings of the node daemon. Return the sockets of the nodes.

    Args:
        again: the sizes of the nodes were chosen for the host as it is now; else for an earlier
            one, of which a node must not have lost anything.
    """
    import msgspec

    from fairbank.wlm.node.devices.gpus import detect_gpus
    from fairbank.wlm.node.settings import HostedNode, NodeSettings

    nodes, devices = directory.path / "nodes", detect_gpus(settings.cluster.gpu_root)
    # A node that is the whole host has what is found there, if that is asked for.
    has_all = settings.scheduling.actual_resources and len(settings.nodes) == 1
    types = tuple(gpu.type for gpu in devices) if has_all else ()
    hosted = [
        HostedNode(
            name=node.name,
            spool=str(nodes / node.name),
            socket=str(nodes / f"{node.name}.sock"),
            cpus=node.cpus,
            memory=node.memory or None,
            gpus=tuple(kind for kind, count in node.gpus for _ in range(count)) or types,
        )
        for node in settings.nodes
    ]
    sockets = [Path(node.socket) for node in hosted]
    directory.check_sockets([*sockets, directory.controller_socket, directory.bank_socket])
    file = directory.path / "node.json"
    host_cpus, host_memory, host_gpus = _host_size(file, len(devices), again=again)
    jobs, defaults = settings.jobs, NodeSettings(nodes=tuple(hosted))
    content = msgspec.structs.replace(
        defaults,
        prolog=jobs.prolog,
        epilog=jobs.epilog,
        prolog_timeout=float(jobs.prolog_timeout or defaults.prolog_timeout),
        epilog_timeout=float(jobs.epilog_timeout or defaults.epilog_timeout),
        kill_wait=float(jobs.kill_wait),
        unkillable_timeout=float(jobs.unkillable_step_timeout),
        unkillable_program=jobs.unkillable_step_program,
        task_prolog=jobs.task_prolog,
        task_epilog=jobs.task_epilog,
        host_cpus=host_cpus,
        host_memory=host_memory,
        host_gpus=host_gpus,
        gpu_root=settings.cluster.gpu_root,
        debug=settings.cluster.slurmd_debug,
        syslog_debug=settings.cluster.slurmd_syslog_debug,
        over_memory_kill="OverMemoryKill" in jobs.job_acct_gather_params,
        sample_seconds=float(jobs.job_acct_gather_frequency or defaults.sample_seconds),
    )
    for node in hosted:
        Path(node.spool).mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(content))
    return sockets


def _host_size(file: Path, gpus: int, *, again: bool) -> tuple[int, int, int]:
    """Return CPUs, memory and GPUs of the host for which the sizes of the nodes were chosen."""
    from fairbank.wlm.node.settings import read_settings
    from fairbank.wlm.node.usage import read_host

    host = read_host()
    if again or not file.exists():
        return host.cpus, host.memory, gpus
    earlier = read_settings(file)
    return (earlier.host_cpus or host.cpus, earlier.host_memory or host.memory, earlier.host_gpus)


def write_agent_settings(directory: ClusterDirectory) -> None:
    """Write the settings of the agent, unless there are some."""
    file, bank = directory.agent_settings, directory.bank
    if file.exists():
        return
    file.write_text(
        f"""\
# Settings of the agent: docs/reference/agent.md
[plugin]
socket = {toml_string(str(directory.agent_socket))}
slurm_user = {os.geteuid()}

[bank]
server = {toml_string(f"unix:{directory.bank_socket}")}

[outbox]
path = {toml_string(f"{bank}/outbox.sqlite")}

[control]
socket = {toml_string(f"{bank}/agent.sock")}

[release]
when_paid = true
every = {_RELEASE_SECONDS}
again = 60
"""
    )


def write_daemons(
    directory: ClusterDirectory, settings: WlmSettings, node_sockets: Sequence[Path]
) -> None:
    """Write the programs that the supervisor starts, each with its log and the sockets at which it
    listens.
    """
    cluster = settings.cluster
    logs = {"controller": cluster.slurmctld_log_file, "node": cluster.slurmd_log_file}
    # In UTF-8 mode a fork reads and writes text as its client would.
    python = [sys.executable, "-P", "-X", "utf8", "-m"]
    path, bank = str(directory.path), directory.bank
    controller_sockets = [directory.controller_socket, directory.metrics_socket]
    commands = str(directory.commands_socket)
    rows: list[tuple[str, list[str], Sequence[Path]]] = [
        ("node", ["fairbank.wlm.node", f"{path}/node.json"], node_sockets),
        ("controller", ["fairbank.wlm.controller", path], controller_sockets),
        (
            "commands",
            ["fairbank.wlm.commands.forks.fork_server", commands],
            [directory.commands_socket],
        ),
    ]
    if settings.bank.socket:
        serve = ["fairbank.cli", "serve", "--config", str(directory.bank_settings)]
        agent = ["fairbank.cli", "agent", "--config", str(directory.agent_settings)]
        rows = [
            ("bank", serve, [directory.bank_socket]),
            ("agent", agent, [directory.agent_socket, bank / "agent.sock"]),
            *rows,
        ]
    daemons: list[dict[str, Any]] = [
        {
            "name": name,
            "command": [*python, *command],
            "log": logs.get(name) or f"{path}/log/{name}.log",
            "sockets": [str(socket) for socket in sockets],
        }
        for name, command, sockets in rows
    ]
    (directory.path / "log").mkdir(exist_ok=True)
    (directory.path / "daemons.json").write_text(json.dumps(daemons, indent=1))


def write_links(directory: ClusterDirectory) -> None:
    """Write the program of Slurm's commands, and make links with their names to it."""
    from fairbank.wlm.commands.forks import fork_client
    from fairbank.wlm.commands.program import ABSENT, MODULES, PROGRAM

    directory.remove_links()
    directory.links.mkdir()
    program = directory.links / PROGRAM
    packages = str(Path(fairbank.__file__).parents[1])
    content = _COMMANDS.format(
        first_line=first_line(sys.executable),
        packages=packages,
        client=fork_client.__name__,
        socket=str(directory.commands_socket),
    )
    program.write_text(content)
    program.chmod(0o755)
    for name in (*MODULES, *ABSENT):
        (directory.links / name).symlink_to(PROGRAM)
