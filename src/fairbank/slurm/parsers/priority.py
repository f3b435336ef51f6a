"""Settings of the priority plug-in in `scontrol show config`, of any version."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.priority.fairshare.decay import parse_reset
from fairbank.priority.settings import (
    DAMPENING_MAX,
    RAW,
    WORDS,
    Algorithm,
    FairShare,
    Flag,
    MultifactorSettings,
    PrioritySettings,
    PriorityWeights,
)
from fairbank.slurm.parsers import words

FLAGS = "PriorityFlags"
TRES = "PriorityWeightTRES"
TRACKED = "AccountingStorageTRES"
ALL_RAW = "NO_NORMAL_ALL"

_YES = {"yes": True, "no": False}
_NEVER = frozenset({"UNLIMITED", "INFINITE"})

Config = Mapping[str, str]


def read_settings(config: Config, flags: str | None = None) -> PrioritySettings:
    """Read the settings. Raises InvalidInput, naming the setting that is missing or wrong.

    Args:
        config: result of `scontrol.read_config`.
        flags: PriorityFlags of slurm.conf, where they are known; they count instead
            (`are_flags_uncertain`).
    """
    settings = {name.lower(): text for name, text in config.items()}
    if _required(settings, "PriorityType") != "priority/multifactor":
        return PrioritySettings(by_factors=False)  # of another plug-in nothing more is told
    flags = settings.get(FLAGS.lower(), "") if flags is None else flags
    return PrioritySettings(
        factors=MultifactorSettings(
            weights=PriorityWeights(
                **{name: _weight(settings, word) for name, word in WORDS.items()},
                tres=_weights_of_tres(settings),
            ),
            flags=read_flags(flags),
            max_age_seconds=_seconds(settings, "PriorityMaxAge"),
            favour_small=_yes(settings, "PriorityFavorSmall"),
            accounted=_required(settings, "AccountingStorageType").lower().endswith("slurmdbd"),
        ),
        fair_share=FairShare(
            algorithm=read_algorithm(flags),
            dampening=_whole(settings, "FairShareDampeningFactor", 1, DAMPENING_MAX),
            half_life_seconds=_seconds(settings, "PriorityDecayHalfLife", never=0),
            reset=parse_reset(_required(settings, "PriorityUsageResetPeriod")),
            tick_seconds=_seconds(settings, "PriorityCalcPeriod"),
        ),
    )


def read_tracked_tres(config: Config) -> str:
    """Return the TRES that the cluster counts, in its own order. Raises InvalidInput."""
    return _required({name.lower(): text for name, text in config.items()}, TRACKED)


# Slurm searches the text for words, in any case, and ignores unknown ones: docs/reference/
# slurm-rules.md, "Priority flags".


def read_flags(text: str) -> frozenset[Flag]:
    """Return the flags for factors."""
    upper = text.upper()
    flags = {flag for flag in Flag if flag.value in upper}
    return frozenset(flags | RAW if ALL_RAW in upper else flags)


def read_algorithm(text: str) -> Algorithm:
    """Return the rule that ranks users: Fair Tree unless the flags name another."""
    upper = text.upper()
    if "DEPTH_OBLIVIOUS" in upper:
        return Algorithm.DEPTH_OBLIVIOUS
    return Algorithm.CLASSIC if "NO_FAIR_TREE" in upper else Algorithm.FAIR_TREE


def read_billing_rule(text: str) -> BillingRule:
    """Return the rule that adds weighted TRES."""
    upper = text.upper()
    return next(
        (rule for rule in (BillingRule.MAX_TRES_GRES, BillingRule.MAX_TRES) if rule.name in upper),
        BillingRule.SUM,
    )


def are_flags_uncertain(config: Config) -> bool:
    """Return True if slurm.conf may have fewer flags than these.

    `scontrol show config` of Slurm 22.05 prints NO_NORMAL_ALL if any NO_NORMAL flag is set.
    """
    return ALL_RAW in config.get(FLAGS, "").upper()


def _required(settings: Config, name: str) -> str:
    if (text := settings.get(name.lower())) is not None:
        return text
    raise InvalidInput(
        f"{name} is not there", field=name, remedy="ask slurmctld itself: scontrol show config"
    )


def _yes(settings: Config, name: str) -> bool:
    text = _required(settings, name)
    if text.lower() in _YES:
        return _YES[text.lower()]
    raise InvalidInput(
        f"{words.quoted(text)} is neither yes nor no",
        field=name,
        remedy="ask slurmctld itself: scontrol show config",
    )


def _weight(settings: Config, word: str) -> int:
    return _whole(settings, f"PriorityWeight{word}", 0, U32_MAX)


def _whole(settings: Config, name: str, least: int, most: int) -> int:
    text = _required(settings, name)
    if (
        text.isascii()
        and text.isdecimal()
        and len(text) <= len(str(most))
        and least <= int(text) <= most
    ):
        return int(text)
    raise InvalidInput(
        f"{words.quoted(text)} is out of range",
        field=name,
        remedy=f"a whole number from {least} to {most}",
    )


def _weights_of_tres(settings: Config) -> dict[str, float]:
    text = settings.get(TRES.lower(), "")
    return (
        {name: _weight_of(name, exact) for name, exact in parse_weights(text, field=TRES).items()}
        if text
        else {}
    )


def _weight_of(name: str, exact: Fraction) -> float:
    if name == "billing":
        remedy = "weigh cpu, mem, node or a gres; a job that waits has no billing yet"
        raise InvalidInput("billing has no weight in priorities", field=TRES, remedy=remedy)
    return float(exact)


def _seconds(settings: Config, name: str, *, never: int | None = None) -> int:
    text = _required(settings, name)
    return never if never is not None and text in _NEVER else words.length_seconds(text, name)
