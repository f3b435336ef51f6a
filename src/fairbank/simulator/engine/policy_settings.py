"""Policy files: base policy, and for Slurm's the settings as in slurm.conf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.settings_file import parse_toml
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.time import parse_duration
from fairbank.core.validation import describe_invalid_setting
from fairbank.priority.fairshare.decay import Decay, parse_half_life
from fairbank.priority.settings import (
    DAMPENING_MAX,
    Algorithm,
    MultifactorSettings,
    PriorityWeights,
)
from fairbank.priority.site_factor import Bend, RuleName, idle_keys, rule_of
from fairbank.scheduling.slurm.parameters import (
    NO_MATTER,
    NOT_MODELLED,
    SECOND,
    SchedulerParameters,
)
from fairbank.simulator.engine.policies import SimulationPolicy, policy_named, slurm
from fairbank.simulator.engine.usage_state import PriorityRules

Weight = Annotated[int, msgspec.Meta(ge=0, le=U32_MAX)]
_DEFAULT = PriorityRules()
_NOT_SIMULATED = {
    "bf_min_prio_reserve": "each tested job gets a reservation, whatever its priority",
    "bf_job_part_count_reserve": (
        "each tested job gets a reservation, however many its partition has"
    ),
    "bf_window_linear": "a start is planned for the second at which enough processors are free",
}
"""Parameters that backfill on processors does not model, and what it does instead. To ignore them
would simulate another site than the one that is meant.
"""
_IN_VAIN = ("assoc_limit_stop", "bf_continue", "bf_max_job_array_resv", "bf_one_resv_per_job")
"""Parameters without effect: limits of accounting, interruptions of a cycle, arrays, jobs of
several partitions.
"""


class SchedulerSettings(SchedulerParameters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SchedulerParameters of slurm.conf, with the same names, units and defaults."""


class WeightSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PriorityWeightAge, PriorityWeightFairshare, PriorityWeightJobSize."""

    age: Weight = _DEFAULT.settings.weights.age
    fairshare: Weight = _DEFAULT.settings.weights.fairshare
    job_size: Weight = _DEFAULT.settings.weights.job_size


class PolicyPrioritySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Priority settings. Times are written as in slurm.conf: PriorityMaxAge, PriorityDecayHalfLife
    ("0": no decay), PriorityCalcPeriod.

    `dampening` is FairShareDampeningFactor, which only the classic rules use.
    """

    weights: WeightSettings = WeightSettings()
    max_age: str = "7-0"
    favour_small: bool = False
    fair_share: Algorithm = Algorithm.FAIR_TREE
    dampening: Annotated[int, msgspec.Meta(ge=1, le=DAMPENING_MAX)] = 1
    half_life: str = "7-0"
    calc_period: str = "5"


class PolicySiteFactor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Site factor, with the agent's names. It counts only in a simulation with a bank."""

    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] = 1_000
    rule: RuleName = "linear"
    credit: Bend = Bend()
    expiry: Bend = Bend()


class PolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Policy file. Settings that are left out are those of the base policy."""

    base: Literal["fifo", "fcfs", "easy", "conservative", "slurm"]
    scheduler: SchedulerSettings | None = None
    priority: PolicyPrioritySettings | None = None
    site_factor: PolicySiteFactor | None = None


def policy_of(name: str, text: bytes) -> SimulationPolicy:
    """Return the policy that a TOML text describes. Raises InvalidInput, naming the key."""
    table_of_file = parse_toml(text, "this", field="policy")
    try:
        unknown = _default_settings(table_of_file)
        settings = msgspec.convert(table_of_file, PolicySettings)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, table_of_file, PolicySettings) from bad
    base = policy_named(settings.base)
    if settings.base != "slurm":
        for table in ("scheduler", "priority", "site_factor"):
            if getattr(settings, table) is not None:
                remedy = f'write base = "slurm", or leave [{table}] out'
                raise InvalidInput(
                    f'{table} is only for base = "slurm", not for "{settings.base}"',
                    field=table,
                    remedy=remedy,
                )
        return base._replace(name=name)
    parameters = settings.scheduler or SchedulerParameters()
    for parameter, instead in _NOT_SIMULATED.items():
        if getattr(parameters, parameter):
            raise InvalidInput(
                f"{parameter} is not simulated",
                field=f"scheduler.{parameter}",
                remedy=f"leave it out: {instead}",
            )
    rules = priority_rules(settings.priority or PolicyPrioritySettings())
    if settings.site_factor is not None:
        rules = with_site_factor(rules, settings.site_factor)
    return slurm(name, parameters, rules)._replace(remarks=_remarks(parameters, unknown))


def _default_settings(settings: dict[str, Any]) -> list[str]:
    """Remove parameters from the table that Slurm has and the passes do not model, and return them
    in lower case. Flags are returned only if they are on.
    """
    table = settings.get("scheduler")
    if not isinstance(table, dict):
        return []
    return [
        parameter.lower()
        for parameter in list(table)
        if parameter.lower() in NO_MATTER | NOT_MODELLED and table.pop(parameter) is not False
    ]


def _remarks(parameters: SchedulerParameters, unknown: Sequence[str]) -> list[str]:
    """Return sentences about parameters without effect and those that are not simulated."""
    default = SchedulerParameters()
    without_effect = [
        name for name in _IN_VAIN if getattr(parameters, name) != getattr(default, name)
    ]
    without_effect += [name for name in unknown if name in NO_MATTER]
    if default.sched_min_interval != parameters.sched_min_interval < SECOND:
        without_effect.append("sched_min_interval")
    not_modelled = [name for name in unknown if name in NOT_MODELLED]
    remarks = {
        "changes nothing here": without_effect,
        "not simulated, and passed over": not_modelled,
    }
    return [f"{how}: {', '.join(names)}" for how, names in remarks.items() if names]


def priority_rules(settings: PolicyPrioritySettings) -> PriorityRules:
    """Return the priority rules. Raises InvalidInput, naming the key, for an invalid time."""
    if settings.dampening != 1 and settings.fair_share is Algorithm.FAIR_TREE:
        remedy = (
            f'write fair_share = "{Algorithm.CLASSIC.value}" or'
            f' "{Algorithm.DEPTH_OBLIVIOUS.value}", or leave dampening out'
        )
        raise InvalidInput(
            "Fair Tree knows no dampening", field="priority.dampening", remedy=remedy
        )
    try:
        half_life = parse_half_life(settings.half_life)
    except InvalidInput as bad:
        raise InvalidInput(
            bad.message,
            field="priority.half_life",
            remedy='as in slurm.conf: "14-0" for two weeks, "0" for no decay',
        ) from bad
    return PriorityRules(
        settings=MultifactorSettings(
            weights=PriorityWeights(**msgspec.structs.asdict(settings.weights)),
            max_age_seconds=parse_duration(settings.max_age, field="priority.max_age"),
            favour_small=settings.favour_small,
        ),
        decay=Decay(half_life),
        calc_period=parse_duration(settings.calc_period, field="priority.calc_period"),
        algorithm=settings.fair_share,
        dampening=settings.dampening,
    )


def with_site_factor(rules: PriorityRules, settings: PolicySiteFactor) -> PriorityRules:
    """Return the rules with a site factor. Raises InvalidInput for a key without effect."""
    for fraction, bend in (("credit", settings.credit), ("expiry", settings.expiry)):
        for name, rule in idle_keys(settings.rule, bend):
            field, line = f"site_factor.{fraction}.{name}", f'site_factor.rule = "{rule}"'
            raise InvalidInput(
                f"{field} is only for {line}", field=field, remedy=f"write {line}, or leave it out"
            )
    bent = rule_of(settings.rule, settings.credit, settings.expiry)
    return msgspec.structs.replace(rules, site_rule=bent, site_weight=settings.weight)
