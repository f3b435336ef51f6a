"""Command `fairbank cluster up`: a queue on this host, with its daemons and its bank."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fairbank.cli.commands.cluster.directory import VARIABLE, find_directory
from fairbank.cli.commands.cluster.down import open_partitions
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option, at_least_one
from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.core.slurm_numbers import parse_memory
from fairbank.core.time import show_duration
from fairbank.core.units import counted, show_su
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.bank.allocation import Allocation
    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.wlm.core.settings import WlmSettings

NODES_MAX = 1_000
VIRTUAL_NODE_CPUS = 2
"""CPUs that a virtual node has at least, also on a small host, so that two tasks run on it."""
START_SECONDS = 120.0
FAILURES_MAX = 3
"""Ends of a daemon after which it is not waited for any more."""


def _add(parser: Parser) -> None:
    about = "virtual nodes that share this host, each with its part of it (default: 1)"
    add_option(parser, "--nodes N", about, type=_node_count)
    add_option(parser, "--cpus N", "CPUs of all nodes (default: those of this host, or 2 for each"
               " virtual node if there are fewer)",
               type=at_least_one)  # fmt: skip
    about = "memory of all nodes, such as 16G or 4000M (default: that of this host)"
    add_option(parser, "--memory SIZE", about, type=_memory)
    about = f"directory of the cluster ({VARIABLE}; default: ~/.local/state/fairbank/cluster)"
    add_option(parser, "--dir DIR", about)
    about = "settings: a wlm.toml or a slurm.conf (default: one for this host is written)"
    add_option(parser, "--config FILE", about)
    add_option(parser, "--no-bank", "no bank: jobs need no credit")


def _node_count(text: str) -> int:
    nodes = at_least_one(text)
    if nodes > NODES_MAX:
        raise ArgumentTypeError(f"{nodes} is too many: at most {NODES_MAX:,}")
    return nodes


def _memory(text: str) -> int:
    try:
        size = parse_memory(text, field="--memory")
    except InvalidInput as bad:
        raise ArgumentTypeError(f"{bad.message}: {bad.remedy}") from bad
    if not size:
        raise ArgumentTypeError("a node needs memory: name at least 1M")
    return size


def _up(context: Context, options: Namespace) -> int:
    from fairbank.cli.commands.cluster.settings_files import read_wlm_settings

    directory = find_directory(options.dir)
    os.umask(os.umask(0o077) | 0o022)  # no group may replace sockets and files of the daemons
    directory.prepare()
    former = directory.settings.read_bytes() if directory.settings.exists() else None
    lock = directory.lock_or_wait(START_SECONDS)
    try:
        if lock is not None:
            settings, notes = _write_files(directory, options)
        else:
            if _has_choices(options):
                context.note("The cluster is up: other settings need a fairbank cluster down first")
            try:
                settings, notes = read_wlm_settings(directory.settings)
            except FairbankError as error:
                context.print_text(f"the cluster in {directory.path} is up, with earlier settings")
                context.note(plain(f"{error.message}; {error.remedy}"))
                return 0
        bank_line = _bank_line(context, directory, settings)
        if lock is not None:
            _start_supervisor(directory, lock)
    finally:
        if lock is not None:
            os.close(lock)
    try:
        _wait_until_ready(directory, is_new=lock is not None)
    except Unavailable:
        # Settings that do not work must not take the place of those that did.
        if lock is not None and former is not None:
            directory.settings.write_bytes(former)
        raise
    open_partitions(directory)
    if lock is None and settings.bank.socket:
        _bill_new_partitions(context, directory, settings)
    for note in notes:
        context.note(plain(note))
    if not settings.scheduling.affinity:
        context.note("The nodes have no CPUs of their own, so no job is bound to CPUs")
    context.print_text(_cluster_line(settings))
    context.print_text(bank_line)
    env = "fairbank env"
    if directory != find_directory():
        env = f"{VARIABLE}={shlex.quote(str(directory.path))} {env}"
    context.print_text(f'next: eval "$({env})"; sbatch --wrap hostname; squeue')
    return 0


def _has_choices(options: Namespace) -> bool:
    chosen = (options.nodes, options.cpus, options.memory, options.config, options.no_bank)
    return any(value not in (None, False) for value in chosen)


# --- files ---


def _write_files(
    directory: ClusterDirectory, options: Namespace
) -> tuple[WlmSettings, Sequence[str]]:
    """Write all files of a cluster that does not run. Settings stay unless options change them."""
    from fairbank.cli.commands.cluster import settings_files as files
    from fairbank.setup.cluster_bank import create_bank

    has_changed = _has_choices(options) or not directory.settings.exists()
    text = _settings_text(directory, options) if has_changed else None
    settings, notes = files.read_wlm_settings(directory.settings, text)
    try:
        if text is not None:
            notes = [*notes, *_replace_settings(directory.settings, text)]
        sockets = files.write_node_settings(directory, settings, again=has_changed)
        if settings.bank.socket:
            create_bank(directory.bank, settings, again=has_changed)
            files.write_agent_settings(directory)
        files.write_daemons(directory, settings, sockets)
        files.write_links(directory)
    except OSError as error:
        what = f"cannot write the files of the cluster in {directory.path}"
        raise translate_os_error(error, what, field="--dir") from error
    return settings, notes


def _replace_settings(file: Path, text: str) -> Iterator[str]:
    """Write the wlm.toml. Keep what a user may have changed in it, and yield a note of that."""
    if file.exists() and file.read_bytes() != text.encode():
        old = file.with_name(f"{file.name}.old")
        file.replace(old)
        yield f"The settings are new; those of before are in {old}"
    file.write_text(text, encoding="utf-8")


def _settings_text(directory: ClusterDirectory, options: Namespace) -> str:
    """Return the wlm.toml that the options ask for."""
    import socket

    from fairbank.cli.commands.cluster import settings_files as files
    from fairbank.wlm.config.default_file import bank_table, default_file

    agent = "" if options.no_bank else str(directory.agent_socket)
    bank = "" if options.no_bank else str(directory.bank_socket)
    if options.config is not None:
        if sizes := [name for name in ("nodes", "cpus", "memory") if getattr(options, name)]:
            what = f"--{sizes[0]} and --config exclude each other: FILE has the nodes"
            raise InvalidInput(what, field=f"--{sizes[0]}", remedy="leave one of them out")
        tables = f"{bank_table(agent, bank)}\n" if agent else ""
        try:
            return files.user_settings(options.config, tables)
        except OSError as error:
            what = f"cannot read {options.config}"
            raise translate_os_error(error, what, field="--config") from error
    size = files.machine_size()
    nodes = options.nodes or 1
    cpus = options.cpus or size.cpus
    if options.cpus is None and nodes > 1:
        cpus = max(cpus, nodes * VIRTUAL_NODE_CPUS)
    if cpus != size.cpus:
        size = size._replace(cpus=cpus, sockets=1, threads=1, is_real=cpus < size.cpus)
    size = size._replace(memory=options.memory or size.memory)
    host = socket.gethostname().partition(".")[0]
    return default_file(host, size, nodes=nodes, agent=agent, bank=bank)


# --- daemons ---


def _start_supervisor(directory: ClusterDirectory, lock: int) -> None:
    """Start the supervisor, which inherits the lock, in a session of its own."""
    # No daemon gets the environment of the user: variables such as PYTHONPATH would reach all of
    # them, and a job has that of its submission.
    kept = ("HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    # The agent calls squeue and scontrol.
    path = os.pathsep.join([str(directory.links), *os.get_exec_path()])
    environment |= {"PATH": path, VARIABLE: str(directory.path)}
    log = directory.log("supervisor")
    command = [sys.executable, "-P", "-m", "fairbank.wlm.supervisor", str(directory.path)]
    with log.open("ab") as out:
        subprocess.Popen(
            command,
            cwd=directory.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=[lock],
            start_new_session=True,
        )


def _wait_until_ready(directory: ClusterDirectory, *, is_new: bool) -> None:
    """Wait until all daemons listen. If a new cluster does not, it is ended.

    Raises Unavailable with what the daemon that failed wrote last.
    """
    from fairbank.rest.server.unix_socket import is_listening

    deadline = time.monotonic() + START_SECONDS
    waiting = {
        Path(path): daemon["name"] for daemon in directory.daemons() for path in daemon["sockets"]
    }
    earlier: dict[str, int] = {}  # restarts before
    while True:
        waiting = {path: name for path, name in waiting.items() if not is_listening(path)}
        if not waiting:
            return
        name = next(iter(waiting.values()))
        states = {state["name"]: state for state in directory.supervisor().get("daemons", ())}
        restarts = states[name]["restarts"] if name in states else 0
        failures = restarts - earlier.setdefault(name, 0 if is_new else restarts)
        if not directory.is_up():
            name, why = "supervisor", "ended"
        elif failures >= FAILURES_MAX:
            why = states[name]["end"]
        elif time.monotonic() > deadline:
            why = f"does not listen after {START_SECONDS:.0f} s"
        else:
            time.sleep(0.05)
            continue
        if is_new:
            directory.stop()
        raise Unavailable(
            f"the cluster is not up: {name} {why}; it wrote: {_last_line(directory, name)}",
            remedy=f"see {directory.log(name)}",
        )


def _last_line(directory: ClusterDirectory, name: str) -> str:
    try:
        text = directory.log(name).read_text(errors="replace")
    except OSError:
        text = ""
    lines = text.strip().splitlines()
    return plain(lines[-1][:300]) if lines else "nothing"


def _bill_new_partitions(
    context: Context, directory: ClusterDirectory, settings: WlmSettings
) -> None:
    """Let the bank bill partitions that were added since it started.

    It reads its settings only at its start, so it is ended, and its supervisor starts it again.
    """
    from fairbank.setup.cluster_bank import add_partitions

    bank = directory.daemon_pid("bank")
    names = directory.partitions()
    if bank and (added := add_partitions(directory.bank_settings, settings, names)):
        os.kill(bank, signal.SIGTERM)
        while directory.daemon_pid("bank") in (bank, None) and directory.is_up():
            time.sleep(0.05)
        _wait_until_ready(directory, is_new=False)
        context.note(f"The bank bills from now on: {plain(', '.join(added))}")


# --- the answer ---


def _cluster_line(settings: WlmSettings) -> str:
    nodes, cpus = len(settings.nodes), sum(node.cpus for node in settings.nodes)
    memory = sum(node.memory or 0 for node in settings.nodes)
    size = f"{memory // 1_024} GiB" if memory >= 1_024 else f"{memory} MiB"
    counts = f"{counted(nodes, 'node')}, {counted(cpus, 'CPU')}, {size}"
    line = f"cluster {settings.cluster.cluster_name} is up: {counts}"
    default = next((rules for rules in settings.partitions if rules.is_default), None)
    if default is None:
        return line
    limit = default.default_seconds
    limits = f", limit {_limit(limit)} unless you give --time" if limit else ""
    return f"{line}; partition {default.name}{limits}"


def _limit(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    return show_duration(seconds) if rest else counted(days, "day")


def _bank_line(context: Context, directory: ClusterDirectory, settings: WlmSettings) -> str:
    """Return the credit of the bank, which gets more when its year is over."""
    from fairbank.setup.cluster_bank import PROJECT, grant_year

    if not settings.bank.socket:
        return "bank: none, jobs need no credit"
    cpus = sum(node.cpus for node in settings.nodes)
    allocation = grant_year(directory.bank_settings, cpus)
    return f"bank: project {PROJECT}, {credit_text(context, allocation)}"


def credit_text(context: Context, allocation: Allocation) -> str:
    """Return available credit and last day of an allocation."""
    credit = show_su(allocation.remaining)
    end = datetime.fromtimestamp(allocation.terms.end, context.zone).date()
    return f"{credit} SU until {end}"


UP = host_command(
    "start a queue on this host, or say that it is up",
    (
        "{}",
        "{} --nodes 4                    four virtual nodes, to try scripts for several",
        "{} --dir /var/tmp/queue --no-bank",
    ),
    _add,
    _up,
)
