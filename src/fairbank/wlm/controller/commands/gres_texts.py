"""GPUs as Slurm's commands show them: requests, and what jobs have of nodes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.gres import GPU
from fairbank.core.hostlist import compress
from fairbank.report.slurm.job_rows import JobShare
from fairbank.wlm.core.jobs import NodeGrant
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.gpus import gpu_types


def gres_text(gpus: Iterable[Gpus], name: str = GPU) -> str | None:
    """Return GPUs such as `gpu:a100:2,gpu:1`; None if there are none."""
    words = ((name, kind, str(count)) for kind, count in gpus)
    return ",".join(":".join(filter(None, one)) for one in words) or None


def tres_text(gpus: Iterable[Gpus]) -> str | None:
    """Return requested GPUs such as `gres/gpu:a100:2`; None if there are none."""
    return gres_text(gpus, f"gres/{GPU}")


def tres_per_job(wanted: ResourceRequest) -> str | None:
    """Return the GPUs that are requested in all, also by --ntasks-per-gpu; None if none are."""
    total = [wanted.total_gpus] if wanted.total_gpus else []
    if wanted.tasks_per_gpu is not None:
        total += [one._replace(number=wanted.gpu_count) for one in wanted.gpus_per_task]
    return tres_text(total)


def tres_per_task(wanted: ResourceRequest) -> str | None:
    """Return what is requested for each task: `cpu=2,gres/gpu=1`; None if it is a CPU only."""
    counts = {"cpu": wanted.cpus_per_task} if wanted.cpus_per_task > 1 else {}
    if wanted.tasks_per_gpu is None:
        counts |= {
            f"gres/{GPU}{kind and f':{kind}'}": count for kind, count in wanted.gpus_per_task
        }
    return ",".join(f"{name}={count}" for name, count in counts.items()) or None


def per_gpu(amount: int | None) -> str | None:
    """Return what is requested for each GPU, CPUs or MiB: `gres/gpu:2`; None if nothing is."""
    return None if amount is None else tres_text([Gpus("", amount)])


def tres_bind(wanted: ResourceRequest, binding: str) -> str | None:
    """Return how tasks are bound to GPUs: as `binding` says, or each to its own."""
    if not binding and wanted.gpus_per_task and wanted.tasks_per_gpu is None:
        binding = f"per_task:{sum(count for _, count in wanted.gpus_per_task)}"
    return f"gres/{GPU}:{binding}" if binding else None


def job_gres(grants: Iterable[NodeGrant]) -> str | None:
    """Return the GPUs of a job on all its nodes; None if it has none."""
    counts = Counter[str]()
    for grant in grants:
        counts.update(dict(grant.gpus))
    return gres_text(Gpus(kind, count) for kind, count in sorted(counts.items()))


def numbered_gres(numbers: Iterable[int], types: Sequence[str]) -> str:
    """Return GPUs by type with their numbers: `gpu:a100:2(IDX:0-1)`; empty if there are none.

    `types` has the type of each by its number.
    """
    by_type: dict[str, list[int]] = {}
    for number in sorted(numbers):
        by_type.setdefault(types[number] if number < len(types) else "", []).append(number)
    return ",".join(
        f"{gres_text([Gpus(kind, len(own))])}(IDX:{compress(map(str, own)).strip('[]')})"
        for kind, own in by_type.items()
    )


def job_shares(
    grants: Iterable[NodeGrant], state: CoreState, *, has_ended: bool
) -> tuple[JobShare, ...]:
    """Return what a job has of its nodes, with the numbers of cores, and of GPUs until its end.

    Neighbours of which it has the same are one.
    """
    shares = [_share(grant, state) for grant in grants]
    if has_ended:
        shares = [share._replace(gres="") for share in shares]
    alike = (list(group) for _, group in groupby(shares, lambda share: share[1:]))
    return tuple(own[0]._replace(nodes=compress(one.nodes for one in own)) for own in alike)


def _share(grant: NodeGrant, state: CoreState) -> JobShare:
    name, cores, gpus, _ = grant.binding
    types = gpu_types(state.nodes_of([name])).get(name, ())
    shown = compress(map(str, cores)).strip("[]")
    return JobShare(name, shown, grant.memory, numbered_gres(gpus, types))


def used_gres(grants: Iterable[NodeGrant], types: Sequence[str]) -> str:
    """Return the GPUs of a node that jobs have: `gpu:a100:1(IDX:0),gpu:t4:0(IDX:N/A)`.

    `types` has the type of each by its number; a node without GPUs has `gpu:0`.
    """
    numbers = [number for grant in grants for number in grant.binding.gpus]
    shown = []
    for kind in dict.fromkeys(types):
        own = [number for number in numbers if number < len(types) and types[number] == kind]
        shown.append(numbered_gres(own, types) or f"{gres_text([Gpus(kind, 0)])}(IDX:N/A)")
    return ",".join(shown) or f"{GPU}:0"
