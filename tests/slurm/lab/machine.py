"""Simulated machine of the lab: groups of equal nodes, each a partition with its own billing
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class NodeGroup:
    """Group of equal nodes and their partition. Memory in MiB, as Slurm counts it."""

    partition: str
    nodes: tuple[str, ...]
    cpus: int
    memory: int
    weights: str
    gpus: int = 0
    gpu_kind: str = ""


# HADM's example: 64 cores and 128 GiB, half of the memory worth half of the cores. The third bills
# a GPU as 1, and a core as a sixteenth.
CPU = NodeGroup(
    "cpu", ("c01", "c02", "c03", "c04", "c05", "c06"), 64, 128 * 1024, "CPU=1.0,Mem=0.5G"
)
GPU = NodeGroup("gpu", ("g01", "g02"), 48, 512_000, "CPU=1.0,Mem=0.09375G,GRES/gpu=12.0", 4, "a100")
GPU_T4 = NodeGroup(
    "gpu-t4", ("g03", "g04"), 64, 128 * 1024, "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0", 4, "t4"
)
SIZES: Mapping[str, tuple[NodeGroup, ...]] = {
    "full": (CPU, GPU, GPU_T4),
    "small": (replace(CPU, nodes=("c01",)),),
    "wide": (replace(CPU, nodes=tuple(f"c{number:02}" for number in range(1, 17))),),
    # The nodes of tests/wlm/scenarios/fairbank_site.py.
    "scenarios": (
        NodeGroup("main", tuple(f"n{number}" for number in range(1, 9)), 64, 64_000, "CPU=1.0"),
    ),
    # Those and the nodes of tests/slurm/test_wlm_gpus.py.
    "gpus": (
        NodeGroup("main", tuple(f"n{number}" for number in range(1, 9)), 64, 64_000, "CPU=1.0"),
        NodeGroup("gpu", ("g1", "g2"), 64, 64_000, "CPU=1.0,GRES/gpu=4.0", 4, "a100"),
        NodeGroup("t4", ("g3",), 64, 64_000, "CPU=1.0,GRES/gpu=4.0", 2, "t4"),
    ),
}


def node_names(machine: Sequence[NodeGroup]) -> Iterator[str]:
    """Return all nodes in a fixed order; the index of a node also determines its port."""
    for group in machine:
        yield from group.nodes
