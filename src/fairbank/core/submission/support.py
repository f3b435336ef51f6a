"""Options that the embedded workload manager refuses, and those that have no effect there."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.core.errors import InvalidInput

NO_EFFECT = frozenset(
    "acctg-freq cpu-freq delay-boot disable-status gpu-freq gres-flags hint mcs-label mem-bind"
    " network power preserve-env profile send-libs slurmd-debug threads tres-bind"
    " verbose wait-all-nodes".split()
)
"""Options that are accepted and change nothing."""

_REASONS = {
    "GPUs are requested for the job, each node or each task": "gpus-per-socket",
    "only one user has the cluster": "uid gid",
    "nodes are requested by CPUs, not by sockets or threads": "extra-node-info sockets-per-node"
    " cores-per-socket threads-per-core ntasks-per-core ntasks-per-socket",
    "there are no burst buffers": "bb bbf",
    "there is one cluster": "cluster-constraint",
    "containers are not supported": "container container-id",
    "the environment is that of the submission": "export-file",
    "nodes are not rebooted": "reboot",
    "no cores are set aside": "core-spec thread-spec",
    "nodes are chosen by their weight and position": "spread-job switches use-min-nodes",
    "tasks request only cpu and gres/gpu": "tres-per-task",
    "the nodes share the file systems of one machine": "bcast",
    "there is no PMI server; inside a job, start the program with mpirun or mpiexec": "mpi",
    "X11 is not forwarded": "x11",
}
REFUSED: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
"""Reason of each option that is refused."""
_REFUSED_VALUES = {("exclusive", "mcs"), ("exclusive", "topo")}


def check_supported(options: Mapping[str, str]) -> None:
    """Raise InvalidInput for the first option that is refused, of those by long name."""
    for name, text in options.items():
        reason = REFUSED.get(name)
        if (name, text.lower()) in _REFUSED_VALUES:
            reason = f"--exclusive={text} has no meaning here"
        if reason is not None and (name, text) != ("mpi", "none"):
            raise InvalidInput(
                f"--{name} is not supported: {reason}", field=f"--{name}", remedy="leave it out"
            )
