"""Checks of `fairbank doctor --cluster`: the cluster on this host, its daemons and its state."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from fairbank.cli.commands.cluster.directory import find_directory
from fairbank.core.errors import Conflict, FairbankError
from fairbank.core.health import HealthCheck, run_check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairbank.cli.commands.cluster.directory import ClusterDirectory
    from fairbank.wlm.core.settings import WlmSettings

_FREE_MIB = 100
"""Least free space. A state file keeps a reserve of 1 MiB besides."""
_UP = "fairbank cluster up"


def check_cluster() -> Sequence[HealthCheck]:
    """Check the cluster of this user. Raises FairbankError if there is none."""
    from fairbank.cli.commands.cluster.settings_files import read_wlm_settings

    directory = find_directory()
    directory.check_exists()
    settings, name = None, "cluster"
    try:
        settings = read_wlm_settings(directory.settings)[0]
    except FairbankError as error:  # the daemons may run with the settings of their start
        checks = [HealthCheck(f"settings: {error.message}", False, error.remedy)]
    else:
        name = f"cluster {settings.cluster.cluster_name}"
        checks = [HealthCheck(f"settings of the {name}: {directory.settings}", True)]
        checks += _check_directories(directory, settings)
        checks.append(_check_memory(directory, settings))
    is_up = directory.is_up()
    checks.append(HealthCheck(f"the {name} is {'' if is_up else 'not '}up", is_up, _UP))
    if is_up:
        checks += [_check_daemons(directory), *_check_state(directory)]
        if settings is not None and settings.bank.socket:
            checks.append(_check_prices(directory, settings))
    return checks


def _check_directories(directory: ClusterDirectory, settings: WlmSettings) -> Iterator[HealthCheck]:
    from pathlib import Path

    from fairbank.statefile.local_disk import check_local_disk

    state = Path(settings.cluster.state_save_location or directory.path)
    private = [directory.path, *(directory.path / "nodes" / node.name for node in settings.nodes)]
    yield run_check(
        f"only their owner can use {directory.path} and its nodes", lambda: _check_modes(private)
    )
    yield run_check(
        f"{state} is on a local disk", lambda: check_local_disk(state, field="state_save_location")
    )
    yield run_check(
        f"{_FREE_MIB} MiB are free for the state and the spool",
        lambda: _check_space([state, *private]),
    )
    sockets = [Path(path) for daemon in directory.daemons() for path in daemon["sockets"]]
    yield run_check("the paths of the sockets are short", lambda: directory.check_sockets(sockets))


def _check_modes(paths: Sequence[Path]) -> None:
    """Raise Conflict for a directory that other users can look into."""
    for path in paths:
        if path.exists() and (mode := path.stat().st_mode & 0o777) & 0o077:
            raise Conflict(f"{path} has the mode {mode:04o}", remedy=f"chmod 0700 {path}")


def _check_space(paths: Sequence[Path]) -> None:
    """Raise Conflict if a disk is full."""
    for path in paths:
        if path.exists() and (free := shutil.disk_usage(path).free // 2**20) < _FREE_MIB:
            remedy = "delete what is not needed on this disk"
            raise Conflict(f"{path} has {free} MiB", remedy=remedy)


def _check_memory(directory: ClusterDirectory, settings: WlmSettings) -> HealthCheck:
    """Try how this host can hold jobs to their memory."""
    from fairbank.wlm.node.memory_group import (
        host_parents,
        is_limit_kept,
        memory_groups,
        memory_version,
    )

    if "OverMemoryKill" not in settings.jobs.job_acct_gather_params:
        return HealthCheck("memory of jobs: not limited (JobAcctGatherParams)", True)
    groups = memory_groups(directory.path, host_parents())
    if not (version := memory_version(groups)):
        text = "no control group can be made here that limits memory: it is sampled every second"
        return HealthCheck(f"memory of jobs: {text}", True)

    def check() -> None:
        if not is_limit_kept(groups):
            raise Conflict("it was not", remedy="look at the log of the kernel: dmesg")

    text = f"control groups of version {version}: a process above its limit is killed"
    return run_check(f"memory of jobs: {text}", check)


def _check_daemons(directory: ClusterDirectory) -> HealthCheck:
    from fairbank.rest.server.unix_socket import is_listening

    silent = [
        daemon["name"]
        for daemon in directory.daemons()
        if not all(is_listening(path) for path in daemon["sockets"])
    ]
    what = f"{', '.join(silent)} do not listen" if silent else "all daemons listen"
    return HealthCheck(what, not silent, f"fairbank cluster status; logs: {directory.path}/log")


def _check_prices(directory: ClusterDirectory, settings: WlmSettings) -> HealthCheck:
    """Check that the bank bills all partitions: it holds the jobs of any other."""
    from fairbank.setup.cluster_bank import unbilled_partitions

    def check() -> None:
        names = directory.partitions()
        if missing := unbilled_partitions(directory.bank_settings, settings, names):
            raise Conflict(f"not {', '.join(rules.name for rules in missing)}", remedy=_UP)

    return run_check("the bank bills all partitions", check)


def _check_state(directory: ClusterDirectory) -> Iterator[HealthCheck]:
    """Yield the checks of the controller, which knows the jobs and asks the nodes."""
    from fairbank import __version__
    from fairbank.wlm.client.connection import Controller

    try:
        with Controller(directory.path) as controller:
            answer = controller.request("check")
    except FairbankError as error:
        yield HealthCheck(f"the controller does not answer: {error.message}", False, error.remedy)
        return
    release = answer["release"]
    yield HealthCheck(
        f"the controller is of the release {release}, this command of {__version__}",
        release == __version__,
        f"fairbank cluster down; {_UP}",
    )
    for check in answer["checks"]:
        yield HealthCheck(**check)
