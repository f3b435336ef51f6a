"""Settings of a live Slurm that the scheduler's model follows, and notes on those that it does
not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption, QosRules
from fairbank.scheduling.slurm import parameters as known
from fairbank.scheduling.slurm.parameters import NOT_MODELLED, SchedulerParameters
from fairbank.slurm.parsers.limits import QosRecord
from fairbank.slurm.queue_snapshot.jobs import SelectSettings

PARAMETERS = "SchedulerParameters"

_SELECT = frozenset(
    "CR_LLN CR_ONE_TASK_PER_CORE CR_PACK_NODES CR_SOCKET CR_SOCKET_MEMORY LL_SHARED_GRES".split()
)
"""Ways to choose nodes other than by weight, position and single cores."""
_PREEMPT = frozenset(
    "min_exempt_priority reclaim_licenses reorder_count strict_order youngest_first".split()
)
_FLAT = frozenset({"", "(null)", "N/A", "none", "default", "flat"})


def select_settings(config: Mapping[str, str], all_qos: Sequence[QosRecord]) -> SelectSettings:
    """Return the rules of SelectType and its parameters, SlurmUser, and the flags of QOS."""
    parameters = config.get("SelectTypeParameters", "").upper()
    whole = config.get("SelectType", "").endswith("linear")
    return SelectSettings(
        counts_memory="MEMORY" in parameters,
        whole_nodes=whole,
        slurm_user=config.get("SlurmUser", "root").partition("(")[0],
        qos_flags={qos.name: qos.flags for qos in all_qos if qos.flags},
        thresholds=usage_thresholds(all_qos),
    )


def usage_thresholds(all_qos: Iterable[QosRecord]) -> dict[str, float]:
    """Return the UsageThreshold of each QOS that enforces it."""
    return {
        qos.name: qos.usage_threshold
        for qos in all_qos
        if qos.usage_threshold is not None and "EnforceUsageThreshold" in qos.flags
    }


def preemption(config: Mapping[str, str], qualities: Sequence[QosRecord]) -> Preemption:
    """Return the rules of PreemptType, PreemptMode and each QOS."""
    kind = config.get("PreemptType", "")
    if kind not in {value.value for value in PreemptBy}:
        return Preemption()
    rules = {
        qos.name: QosRules(
            priority=qos.priority,
            preempts=qos.preempts,
            preempted=_mode(qos.mode),
            exempt_seconds=qos.exempt_seconds,
        )
        for qos in qualities
        if kind == PreemptBy.QOS.value
    }
    return Preemption(
        by=PreemptBy(kind),
        mode=_mode(config.get("PreemptMode", "OFF")) or PreemptMode.OFF,
        qos=rules,
    )


def _mode(text: str) -> PreemptMode | None:
    """Return the word of a list that says what happens to a job; GANG does not."""
    return next(
        (PreemptMode(word) for word in text.upper().split(",") if word in PreemptMode.__members__),
        None,
    )


def scheduler_parameters(text: str, notes: list[str]) -> SchedulerParameters:
    """Return the parameters that are known and within range.

    Unknown ones of other versions are noted. As in slurmctld, the default replaces a value out of
    range.
    """
    kept: list[str] = []
    for parameter in filter(None, (part.strip() for part in text.split(","))):
        try:
            known.parse_parameters(",".join([*kept, parameter]))
        except InvalidInput as error:
            notes.append(f"{PARAMETERS}: {error.message}, and is passed over")
        else:
            kept.append(parameter)
    return known.parse_parameters(",".join(kept))


def unsupported_notes(config: Mapping[str, str], least_loaded: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each setting; `least_loaded` are the partitions that prefer such
    nodes.
    """
    yield from _setting_note(
        PARAMETERS, NOT_MODELLED.intersection(_names(config.get(PARAMETERS, "")))
    )
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
    """Yield the names of `defer,bf_max_time=60` in lower case, since Slurm ignores it."""
    for word in text.lower().split(","):
        yield word.partition("=")[0].strip()


def _setting_note(setting: str, names: Iterable[str]) -> Iterator[str]:
    if listed := sorted(names):
        yield (
            f"{setting}: {', '.join(listed)}: not modelled here, so that slurmctld may decide"
            " otherwise"
        )
