"""Explanation of a request that no empty machine could run: what excludes the most nodes, and the
nearest request that would run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from fairbank.scheduling.explain.checks import least_nodes
from fairbank.scheduling.explain.earlier_start import find_earlier_start
from fairbank.scheduling.explain.job_changes import FewerResources, fewer_resources, with_request
from fairbank.scheduling.explain.job_view import filter_nodes
from fairbank.scheduling.machines.node_snapshot import node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.slurm.queue_order import entries_in_all_partitions

_MEMORY_OPTIONS: Mapping[str, str] = {
    "memory_per_node": "--mem",
    "memory_per_cpu": "--mem-per-cpu",
    "memory_per_gpu": "--mem-per-gpu",
    "tmp": "--tmp",
}
"""Options of sbatch by the field of the request that they set."""


class Infeasibility(NamedTuple):
    """Cause why a job could never run, and the option with which it could; empty if one change is
    not enough. `is_by_features`: no node has the features that it requests.
    """

    cause: str
    option: str
    is_by_features: bool = False


def explain_infeasibility(nodes: Nodes, job: PendingJob) -> Infeasibility:
    """Explain why a job could never run in its first partition.

    Args:
        nodes: the machine, empty and with all nodes up.
        job: a job that it cannot run.
    """
    entry = entries_in_all_partitions(nodes, job)[0]
    filtered, total = filter_nodes(nodes, entry, (), 0), entry.nodes.bit_count()
    needed = f"it needs {least_nodes(nodes, entry, filtered):,}"
    lasting = [exclusion for exclusion in filtered.excluded if exclusion.is_permanent]
    if lasting:
        worst = max(lasting, key=lambda exclusion: exclusion.nodes.bit_count())
        count = worst.nodes.bit_count()
        cause = f"{count:,} of {total:,} nodes cannot be used ({worst.cause}), and {needed}"
        by_features = count == total and worst.cause.startswith("without the features")
        return Infeasibility(cause, _nearest_request(nodes, job), by_features)
    cause = f"{total:,} nodes can be used, and {needed}"
    if (gpus := job.wanted.total_gpus) is not None:
        counts = nodes.search.empty.gpu_counts(gpus.type)[node_set.places(filtered.suitable)]
        kind = f" {gpus.type}" if gpus.type else ""
        cause = f"{total:,} nodes with {int(counts.sum()):,}{kind} GPUs can be used, and {needed}"
    if least_nodes(nodes, entry, filtered) <= total:
        cause += ", which together have too little for the whole request"
    return Infeasibility(cause, _nearest_request(nodes, job))


def _nearest_request(nodes: Nodes, job: PendingJob) -> str:
    """Return the option for the largest request that would run, with one amount changed."""
    snapshot = node_snapshot(nodes, pending=[job], running=[])

    def start(changed: PendingJob) -> int | None:
        return 0 if nodes.can_ever_fit(changed) else None

    amounts = [*fewer_resources(job, snapshot), *_less_memory(job)]
    candidates = [fewer.search(snapshot, start) for fewer in amounts if fewer.most > fewer.least]
    suggestion = find_earlier_start(None, candidates).suggestion
    return "" if suggestion is None else suggestion.option


def _less_memory(job: PendingJob) -> Iterator[FewerResources]:
    """Yield memory of each node, memory for each CPU or GPU, and temporary disk, in MiB."""
    for field, option in _MEMORY_OPTIONS.items():
        yield FewerResources(
            f"less {option}",
            1,
            getattr(job.wanted, field) or 0,
            partial(_with_memory, job, field),
            partial(_memory_option, field),
        )


def _with_memory(job: PendingJob, field: str, amount: int) -> PendingJob:
    return with_request(job, **{field: amount})


def _memory_option(field: str, job: PendingJob) -> str:
    return f"{_MEMORY_OPTIONS[field]}={getattr(job.wanted, field)}M"
