"""Version and settings of Slurm: slurm.conf and `scontrol show config`, of any version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.cluster.allocated_tres import Memory, MemoryUnit
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.time import parse_instant
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
from fairbank.report.slurm.notation import NULL, UNLIMITED, UNLIMITED_WORDS
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.conf_lines import INCLUDE, conf_lines

_VERSION = re.compile(r"slurm\S* (\d{2})\.(\d{2})\.(\d{1,3})\S*", re.ASCII)
_LINE = re.compile(r"(\w+)\s*=\s*(.*)")
_SETTING = re.compile(r"(\S+)\s+= ?(.*)")
_AS_OF = re.compile(r"Configuration data as of (\S+)\n")

# --- version ---


class Version(NamedTuple):
    """Year, month and number, as in 22.05.8."""

    year: int
    month: int
    micro: int

    def __str__(self) -> str:
        return f"{self.year}.{self.month:02}.{self.micro}"


OLDEST = Version(22, 5, 0)
RECORDED = frozenset({(22, 5), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5)})
"""Year and month of the versions whose real output the tests read."""

COMPLETE_JSON = Version(23, 11, 0)
"""First version whose JSON has everything that the columns have, and tells "not set" from 0."""


def support_note(version: Version) -> str:
    """Describe how well the output of this version is known."""
    if version[:2] in RECORDED:
        return "its answers are known"
    return (
        "its answers were never recorded, only those of"
        f" {', '.join(f'{year}.{month:02}' for year, month in sorted(RECORDED))}"
    )


def read_version(text: str) -> Version:
    """Read `sinfo --version`.

    Raises InvalidInput for another program, or a version that is too old.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"{words.quote_unknown(text)} is not a version of Slurm",
            field="version",
            remedy="is it Slurm's sinfo that PATH finds?",
        )
    version = Version(*map(int, match.groups()))
    if version < OLDEST:
        raise InvalidInput(
            f"Slurm {version} is too old",
            field="version",
            remedy=f"Fairbank reads the answers of Slurm {OLDEST} and newer",
        )
    return version


# --- slurm.conf ---


class Conf(NamedTuple):
    """Settings of slurm.conf by lower-case name (Slurm ignores case), and its include lines."""

    settings: Mapping[str, str]
    includes: Sequence[str]


def read_conf(text: str) -> Conf:
    """Read lines of one setting each.

    Of nodes, partitions and the like only the last line is kept.
    """
    lines = [line.text for line in conf_lines(text)]
    settings = {
        match[1].lower(): match[2].strip('"') for match in map(_LINE.fullmatch, lines) if match
    }
    return Conf(settings, [match[1] for match in map(INCLUDE.fullmatch, lines) if match])


def split_list(value: str) -> list[str]:
    """Return the words of a setting such as `PrEpPlugins=prep/fairbank,prep/script`."""
    return list(filter(None, map(str.strip, value.split(","))))


def split_parameters(value: str) -> dict[str, str]:
    """Return the words of a setting such as `PrEpParameters=a=1,b` by name; "" for a bare name."""
    return {
        name.rstrip(): setting.lstrip()
        for name, _, setting in (word.partition("=") for word in split_list(value))
    }


# --- scontrol show config ---


def read_config(text: str) -> Mapping[str, str]:
    """Read `scontrol show config`; `(null)` becomes an empty text."""
    matches = map(_SETTING.fullmatch, text.splitlines())
    return {
        match[1]: "" if match[2].strip() == NULL else match[2].strip() for match in matches if match
    }


def slurm_uid(config: Mapping[str, str]) -> int | None:
    """Return the uid in `SlurmUser = slurm(64030)`, or None."""
    number = config.get("SlurmUser", "").rpartition("(")[2].rstrip(")")
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 10 else None


def read_clock(text: str) -> int:
    """Return the time of `scontrol show config` by slurmctld's clock, run in UTC.

    Raises InvalidInput.
    """
    match = _AS_OF.match(text)
    if match is None:
        remedy = "keep the whole output, with its first line: TZ=UTC scontrol show config"
        raise InvalidInput(
            f"{words.quote_unknown(text)} does not begin with its time",
            field="scontrol show config",
            remedy=remedy,
        )
    return parse_instant(match[1], field="scontrol show config")


# --- priority ---

FLAGS = "PriorityFlags"
TRES = "PriorityWeightTRES"
TRACKED = "AccountingStorageTRES"
ALL_RAW = "NO_NORMAL_ALL"

_WHOLE = re.compile(r"\d{1,10}", re.ASCII)  # as many digits as U32_MAX has
_YES = {"yes": True, "no": False}

Config = Mapping[str, str]


def read_settings(config: Config, flags: str | None = None) -> PrioritySettings:
    """Read the settings. Raises InvalidInput, naming the setting that is missing or wrong.

    Args:
        config: result of `read_config`.
        flags: PriorityFlags of slurm.conf, where they are known; they count instead
            (`are_flags_uncertain`).
    """
    settings = {name.lower(): text for name, text in config.items()}
    if _required(settings, "PriorityType") != "priority/multifactor":
        return PrioritySettings(by_factors=False)  # Slurm shows no settings of another plug-in
    flags = settings.get(FLAGS.lower(), "") if flags is None else flags
    return PrioritySettings(
        factors=MultifactorSettings(
            weights=PriorityWeights(
                **{
                    name: _whole(settings, f"PriorityWeight{word}", 0, U32_MAX)
                    for name, word in WORDS.items()
                },
                tres=read_tres_weights(settings.get(TRES.lower(), "")),
            ),
            flags=read_flags(flags),
            max_age_seconds=_seconds(settings, "PriorityMaxAge"),
            favour_small=_is_yes(settings, "PriorityFavorSmall"),
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


def read_default_memory(config: Config) -> Memory | None:
    """Return the memory of jobs that request none, in partitions without a default of their own.

    None if it is unknown. Where memory is counted and there is no default, jobs get all of it.
    """
    for name, unit in (("DefMemPerCPU", MemoryUnit.CPU), ("DefMemPerNode", MemoryUnit.NODE)):
        text = config.get(name, "")
        if text.isascii() and text.isdecimal():
            return Memory(int(text), unit)
        if text == UNLIMITED and "MEMORY" in config.get("SelectTypeParameters", "").upper():
            return Memory(0)
    return None


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


def _is_yes(settings: Config, name: str) -> bool:
    text = _required(settings, name)
    if text.lower() in _YES:
        return _YES[text.lower()]
    raise InvalidInput(
        f"{words.quote_unknown(text)} is neither yes nor no",
        field=name,
        remedy="ask slurmctld itself: scontrol show config",
    )


def _whole(settings: Config, name: str, least: int, most: int) -> int:
    text = _required(settings, name)
    if _WHOLE.fullmatch(text) and least <= int(text) <= most:
        return int(text)
    raise InvalidInput(
        f"{words.quote_unknown(text)} is out of range",
        field=name,
        remedy=f"a whole number from {least} to {most}",
    )


def read_tres_weights(text: str) -> dict[str, float]:
    """Return the weights of PriorityWeightTRES. Raises InvalidInput."""
    weights = parse_weights(text, field=TRES) if text else {}
    if "billing" in weights:
        remedy = "weigh cpu, mem, node or a gres; a job that waits has no billing yet"
        raise InvalidInput("billing has no weight in priorities", field=TRES, remedy=remedy)
    return {name: float(exact) for name, exact in weights.items()}


def _seconds(settings: Config, name: str, *, never: int | None = None) -> int:
    text = _required(settings, name)
    return (
        never if never is not None and text in UNLIMITED_WORDS else words.length_seconds(text, name)
    )
