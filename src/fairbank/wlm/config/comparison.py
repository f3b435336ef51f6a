"""Comparison of settings before and after a change: what differs, and what must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairbank.cluster.node import Node
from fairbank.core.hostlist import compress
from fairbank.wlm.config.keywords import SETTINGS
from fairbank.wlm.core.settings import WlmSettings

_AT_START = frozenset(
    (
        "cluster.cluster_name cluster.slurmctld_host cluster.metrics_port cluster.gpu_root"
        " cluster.slurmctld_log_file cluster.slurmd_log_file cluster.state_save_location"
        " bank.socket bank.server bank.holds_without_agent"
    ).split()
)
"""Settings that the daemons use once, at their start."""
_OF_NODES = frozenset(
    (
        "cluster.slurmd_debug cluster.slurmd_syslog_debug"
        " jobs.prolog jobs.epilog jobs.prolog_timeout jobs.epilog_timeout jobs.kill_wait"
        " jobs.unkillable_step_timeout jobs.unkillable_step_program jobs.job_acct_gather_frequency"
        " jobs.job_acct_gather_params jobs.task_prolog jobs.task_epilog"
    ).split()
)
"""Settings that only the node daemons use, from their start on."""
_KEYWORDS = {field: keyword.name for keyword in SETTINGS for field in keyword.targets}


class InUse(NamedTuple):
    """Resources of jobs: CPUs, GPUs (up to the last one) and MiB by node, for those that run;
    partitions, also for those that wait.
    """

    cpus: Mapping[str, int] = {}
    memory: Mapping[str, int] = {}
    partitions: frozenset[str] = frozenset()
    gpus: Mapping[str, int] = {}


class Comparison(NamedTuple):
    """Names of what changes: keywords, nodes as a hostlist, partitions. Sentences on what cannot
    change; if there are any, nothing may. `later`: sentences on what changes at the next start.
    """

    keywords: Sequence[str]
    nodes: str
    partitions: Sequence[str]
    refused: Sequence[str]
    later: Sequence[str] = ()


def compare(old: WlmSettings, new: WlmSettings, in_use: InUse) -> Comparison:
    """Compare the settings of a running controller with those that it is asked to take."""
    before = {node.name: node for node in old.nodes}
    after = {node.name: node for node in new.nodes}
    rules = {partition.name: partition for partition in old.partitions}
    new_rules = {partition.name: partition for partition in new.partitions}
    fields = [
        field
        for group in WlmSettings.__struct_fields__
        if group not in ("nodes", "partitions")
        for field in _changed_fields(getattr(old, group), getattr(new, group), group)
    ]
    refused = [
        f"{_KEYWORDS[field]} cannot change while the controller runs: stop it first"
        for field in fields
        if field in _AT_START
    ]
    actual = new.scheduling.actual_resources
    refused += (
        fault
        for name in sorted(in_use.cpus.keys() | in_use.memory.keys())
        if name in before
        for fault in _node_faults(
            before[name], after.get(name), _of_actual(in_use, after.get(name)) if actual else in_use
        )
    )
    refused += (
        f"partition {name} cannot be removed: it has jobs"
        for name in sorted(in_use.partitions - new_rules.keys())
    )
    sized = compress(name for name in after if _size(after[name]) != _size(before.get(name)))
    return Comparison(
        keywords=list(dict.fromkeys(_KEYWORDS.get(field, field) for field in fields)),
        nodes=compress(_different(before, after)),
        partitions=_different(rules, new_rules),
        refused=refused,
        later=[
            f"{name} changes when the node daemons are started again"
            for name in (*(_KEYWORDS[field] for field in fields if field in _OF_NODES), sized)
            if name
        ],
    )


def _different(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return the names whose values differ, in the order of the old and then the new ones."""
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


def _changed_fields(old: object, new: object, path: str) -> Iterator[str]:
    if old == new:
        return
    if path in _KEYWORDS or not isinstance(old, msgspec.Struct):
        yield path
        return
    for field in old.__struct_fields__:
        yield from _changed_fields(getattr(old, field), getattr(new, field), f"{path}.{field}")


def _size(node: Node | None) -> tuple[object, ...] | None:
    """Return what a node daemon gives its node: CPUs, MiB and GPUs."""
    return None if node is None else (node.cpus, node.memory, node.gpus)


def _of_actual(in_use: InUse, node: Node | None) -> InUse:
    """Return what jobs have of a node that may have more than is configured."""
    return InUse(gpus=in_use.gpus if node is not None and node.gpus else {})


def _node_faults(old: Node, new: Node | None, in_use: InUse) -> Iterator[str]:
    """Yield why a node with jobs cannot change. A job keeps the cores that it has by number."""
    cpus, memory = in_use.cpus.get(old.name, 0), in_use.memory.get(old.name, 0)
    if new is None:
        yield f"node {old.name} cannot be removed: it has jobs"
        return
    if new.cpus < cpus:
        yield f"node {old.name} cannot have {new.cpus} CPUs: its jobs have {cpus}"
    if new.threads != old.threads:
        yield f"node {old.name} cannot change ThreadsPerCore: it has jobs"
    gpus, count = in_use.gpus.get(old.name, 0), sum(gpu.number for gpu in new.gpus)
    if gpus and new.gpus != old.gpus:
        yield f"node {old.name} cannot change Gres: its jobs have GPUs"
    elif count < gpus:
        yield f"node {old.name} cannot have {count} GPUs: its jobs have {gpus}"
    if new.memory < memory:
        yield f"node {old.name} cannot have {new.memory} MiB: its jobs have {memory}"
