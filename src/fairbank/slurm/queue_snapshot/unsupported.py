"""What a Slurm goes by and the scheduler here does not have: told to people once, by name, since slurmctld may decide otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fairbank.scheduling.machines.node_rules import PreemptBy
from fairbank.scheduling.slurm.parameters import NOT_MODELLED

PARAMETERS = "SchedulerParameters"

_SELECT = frozenset(
    "CR_LLN CR_ONE_TASK_PER_CORE CR_PACK_NODES CR_SOCKET CR_SOCKET_MEMORY LL_SHARED_GRES".split()
)
"""Which nodes, and how much of them, in another way than by weight, place and single cores."""
_PREEMPT = frozenset(
    "min_exempt_priority reclaim_licenses reorder_count strict_order youngest_first".split()
)
_FLAT = frozenset({"", "(null)", "N/A", "none", "default", "flat"})


def unsupported_notes(config: Mapping[str, str], least_loaded: Iterable[str]) -> Iterator[str]:
    """A sentence for each setting. `least_loaded`: the partitions that give away such nodes first."""
    yield from _setting_note(PARAMETERS, NOT_MODELLED.intersection(_names(config.get(PARAMETERS, ""))))
    yield from _setting_note(
        "SelectTypeParameters",
        _SELECT.intersection(map(str.upper, _names(config.get("SelectTypeParameters", "")))),
    )
    yield from _setting_note("LLN of partitions", least_loaded)
    topology = config.get("TopologyPlugin", "")
    yield from _setting_note(
        "TopologyPlugin", () if topology.removeprefix("topology/") in _FLAT else (topology,)
    )
    if config.get("PreemptType") in {PreemptBy.PARTITION.value, PreemptBy.QOS.value}:
        yield from _setting_note(
            "PreemptParameters", _PREEMPT.intersection(_names(config.get("PreemptParameters", "")))
        )


def _names(text: str) -> Iterator[str]:
    """`defer,bf_max_time=60` without the values, in small letters: Slurm takes either."""
    for each in text.lower().split(","):
        yield each.partition("=")[0].strip()


def _setting_note(setting: str, names: Iterable[str]) -> Iterator[str]:
    if found := sorted(names):
        yield f"{setting}: {', '.join(found)}: not modelled here, so that slurmctld may decide otherwise"
