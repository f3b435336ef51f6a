"""Accepted forms of values that describe a cluster: hosts, states, access, TRES, licenses."""

from __future__ import annotations

import re

from fairbank.cluster.node import Gpus, NodeState
from fairbank.cluster.partition_rules import AccessList, OverSubscribe, PartitionState, PreemptMode
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, parse_gres
from fairbank.core.hostlist import expand
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.core.tres import BillingRule, parse_quantities, parse_weights, tres_name
from fairbank.priority.fairshare.decay import Reset, parse_reset
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.settings import Algorithm, Flag
from fairbank.scheduling.slurm.parameters import SchedulerParameters, parse_parameters
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.config import (
    read_algorithm,
    read_billing_rule,
    read_flags,
    read_tres_weights,
    split_list,
    split_parameters,
)
from fairbank.wlm.config.forms import (
    MEMORY_LIMIT,
    NAMES,
    SECONDS,
    ValueForm,
    list_of,
    mapped,
    one_of,
    read_names,
    refuse,
    whole,
)
from fairbank.wlm.core.settings import REQUEUE_WAIT, SCRIPT_MAX

_SHARING = re.compile(r"(?i)(NO|EXCLUSIVE|YES|FORCE)(?::(\d{1,5}))?", re.ASCII)
_NODE_STATES = {
    "UNKNOWN": NodeState.UP,
    "IDLE": NodeState.UP,
    "DOWN": NodeState.DOWN,
    "DRAIN": NodeState.DRAINED,
    "DRAINED": NodeState.DRAINED,
    "FAIL": NodeState.FAILED,
    "FAILING": NodeState.FAILED,
    "FUTURE": NodeState.FUTURE,
}


def _hosts(text: str, field: str) -> tuple[str, ...]:
    if hosts := tuple(expand(text, field=field)):
        return hosts
    raise refuse(text, field, "names no host")


def _partition_nodes(text: str, field: str) -> tuple[str, ...]:
    """Return the names; none for ALL, as `PartitionRules` has it."""
    return () if text.upper() == "ALL" else _hosts(text, field)


def _sharing(text: str, field: str) -> tuple[OverSubscribe, int]:
    match = _SHARING.fullmatch(text)
    way = match[1].upper() if match else ""
    rows = int(match[2] or 4) if match else 0
    if match is None or (match[2] and way in ("NO", "EXCLUSIVE")) or not 1 <= rows <= 32_767:
        raise refuse(text, field, "is not a way to share CPUs")
    return OverSubscribe[way], rows


def access(reason: str, *, denies: bool = False) -> ValueForm:
    """Return the form of the names that a partition admits, or denies; None for ALL."""

    def read(text: str, field: str) -> AccessList | None:
        if text.upper() == "ALL" and not denies:
            return None
        if names := read_names(text, field):
            return AccessList(names, reason, denies=denies)
        raise refuse(text, field, "has no name")

    return ValueForm(NAMES.words + ("" if denies else ", or ALL"), read)


def _gpus(text: str, field: str) -> tuple[Gpus, ...]:
    others = {gres.name for gres in parse_gres(text, field=field)} - {GPU}
    if others:
        raise refuse(min(others), field, "is not supported: only GPUs are")
    return words.gpus(text, field)


def _tres_names(text: str, field: str) -> tuple[str, ...]:
    return tuple(tres_name(part, field=field) for part in split_list(text))


def _tres_counts(text: str, field: str) -> dict[str, int]:
    return {name: int(count) for name, count in parse_quantities(text, field=field).items()}


_FLAG_WORDS = list_of(
    " ".join(flag.value for flag in Flag)
    + " NO_NORMAL_ALL MAX_TRES MAX_TRES_GRES FAIR_TREE NO_FAIR_TREE DEPTH_OBLIVIOUS"
)
_ENFORCED = list_of("none associations limits qos safe wckeys nojobs nosteps all")


def _priority_flags(text: str, field: str) -> tuple[frozenset[Flag], Algorithm, BillingRule]:
    _FLAG_WORDS.read(text, field)
    return read_flags(text), read_algorithm(text), read_billing_rule(text)


def _enforced(text: str, field: str) -> tuple[Enforced, bool, bool]:
    """Return the enforced limits, and whether jobs need an association, and a QOS it may use."""
    enforced = _ENFORCED.read(text, field)
    # Limits, safe, qos and wckeys imply associations; jobs and steps are always stored here.
    needs_association = bool(enforced - {"none", "nojobs", "nosteps"})
    return Enforced.parse(text), needs_association, not enforced.isdisjoint({"qos", "all"})


def _parameters(text: str, field: str) -> tuple[SchedulerParameters, bool, int]:
    """Return SchedulerParameters, and those that do not concern a pass: whether a job whose prolog
    fails is held, and the largest script.
    """
    try:
        parameters = parse_parameters(text, field=field)
    except InvalidInput as bad:  # whose remedy is about one parameter, unlike that of the form
        raise InvalidInput(f"{bad.message} ({bad.remedy})", field=field) from bad
    others = split_parameters(text.lower())
    size = others.get("max_script_size", f"{SCRIPT_MAX}")
    script_max = whole(1, 512 << 20, "bytes").read(size, field)
    return parameters, "nohold_on_prolog_fail" not in others, script_max


def _requeue_wait(text: str, field: str) -> int:
    """Return cred_expire of AuthInfo; its other parts are about MUNGE."""
    parts = split_parameters(text.lower())
    seconds: int = SECONDS.read(parts.get("cred_expire", f"{REQUEUE_WAIT}"), field)
    return seconds


def _licenses(text: str, field: str) -> dict[str, int]:
    counts = words.licenses(text, field)
    return {ids.name(name, field=field): count for name, count in counts.items()}


def _shares(text: str, field: str) -> int:
    return ON_PARENT if text.lower() == "parent" else whole(0, SHARES_MAX).read(text, field)


CLUSTER = ValueForm(
    "name without blanks, / : or @", lambda text, field: ids.cluster(text, field=field)
)
HOSTS = ValueForm("hosts, such as n[01-10,12],login", _hosts)
PARTITION_NODES = ValueForm("nodes, such as n[01-10,12]; or ALL", _partition_nodes)
FEATURES = ValueForm(
    "words with commas between them", lambda text, field: frozenset(split_list(text))
)
SHARING = ValueForm("NO, EXCLUSIVE, YES[:COUNT] or FORCE[:COUNT]", _sharing)
NODE_STATE = mapped(
    one_of(" ".join(_NODE_STATES), "CLOUD", "power saving is not built"), _NODE_STATES.__getitem__
)
PARTITION_STATE = mapped(one_of("UP DOWN DRAIN INACTIVE"), PartitionState)
PREEMPT_MODE = mapped(
    one_of("OFF CANCEL REQUEUE", "SUSPEND GANG", "jobs do not share CPUs in turns"), PreemptMode
)
# Each of the two clears the other, so that a line overrides the DEFAULT line before it.
MEMORY_PER_CPU = mapped(MEMORY_LIMIT, lambda size: (size, None))
MEMORY_PER_NODE = mapped(MEMORY_LIMIT, lambda size: (None, size))
PRIORITY_FLAGS = ValueForm(_FLAG_WORDS.words, _priority_flags)
ENFORCED = ValueForm(_ENFORCED.words, _enforced)
RESET = ValueForm(
    f"one of {', '.join(reset.value for reset in Reset)}", lambda text, field: parse_reset(text)
)
PARAMETERS = ValueForm(
    "parameters of the scheduler, such as bf_window=2880,bf_continue", _parameters
)
GPUS = ValueForm("GPUs, such as gpu:2 or gpu:a100:4", _gpus)
TRES_NAMES = ValueForm("TRES, such as gres/gpu,license/matlab", _tres_names)
TRES_COUNTS = ValueForm("TRES, such as cpu=16,mem=64G,gres/gpu=2", _tres_counts)
TRES_WEIGHTS = ValueForm(
    "TRES, such as cpu=1000,gres/gpu=5000", lambda text, field: read_tres_weights(text)
)
BILLING_WEIGHTS = ValueForm(
    "TRES, such as cpu=1,mem=0.25G", lambda text, field: parse_weights(text, field=field)
)
AUTH_INFO = ValueForm("cred_expire=SECONDS: how long a requeued job waits", _requeue_wait)
LICENSES = ValueForm("licenses, such as matlab:2,ansys", _licenses)
SHARES = ValueForm("whole number, or parent", _shares)
