"""What an administrator says about priorities: weights, flags and the age that counts in full, as slurm.conf spells them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction

import msgspec

from fairbank.values.time import DAY, parse_duration
from fairbank.values.tres import parse_weights
from fairbank.values.trouble import Malformed

WEIGHT_MAX = 2**32 - 1


class Flag(Enum):
    """PriorityFlags, except those of billing (`values.tres.Adding`) and of the fair-share algorithm (`uses_fair_tree`)."""

    ACCRUE_ALWAYS = "ACCRUE_ALWAYS"
    CALCULATE_RUNNING = "CALCULATE_RUNNING"
    INCR_ONLY = "INCR_ONLY"
    NO_NORMAL_ASSOC = "NO_NORMAL_ASSOC"
    NO_NORMAL_PART = "NO_NORMAL_PART"
    NO_NORMAL_QOS = "NO_NORMAL_QOS"
    NO_NORMAL_TRES = "NO_NORMAL_TRES"
    SMALL_RELATIVE_TO_TIME = "SMALL_RELATIVE_TO_TIME"


RAW = frozenset({Flag.NO_NORMAL_ASSOC, Flag.NO_NORMAL_PART, Flag.NO_NORMAL_QOS, Flag.NO_NORMAL_TRES})
"""What NO_NORMAL_ALL stands for."""


def parse_flags(text: str) -> frozenset[Flag]:
    """The flags that Slurm finds in `text`: it looks for each word anywhere, in any case, and passes over what it does not know
    (facts, section 2.4)."""
    said = text.upper()
    found = {flag for flag in Flag if flag.value in said}
    return frozenset(found | RAW if "NO_NORMAL_ALL" in said else found)


def uses_fair_tree(text: str) -> bool:
    """Whether these PriorityFlags leave Fair Tree on, as it is unless they say otherwise (facts, section 2.4)."""
    said = text.upper()
    return "NO_FAIR_TREE" not in said and "DEPTH_OBLIVIOUS" not in said


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What each factor counts: the most it adds to a priority while factors are normalised. Whole numbers, except for TRES.

    Raises Malformed for one that Slurm could not hold, NaN and infinity among them.
    """

    age: int = 0
    association: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        for name in ("age", "association", "fairshare", "job_size", "partition", "qos"):
            value = getattr(self, name)
            if not (isinstance(value, int) and 0 <= value <= WEIGHT_MAX):
                field = f"PriorityWeight{_WORDS[name]}"
                raise Malformed(f"{value!r} is not a weight", field=field, remedy=f"a whole number from 0 to {WEIGHT_MAX}")
        for name, weight in self.tres.items():
            if not (math.isfinite(weight) and weight >= 0):
                remedy = "a number from 0 up, such as cpu=1000"
                raise Malformed(f"{name}={weight} is not a weight", field="PriorityWeightTRES", remedy=remedy)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How priorities are made. `max_age_seconds`: the wait that counts in full; 0 lets every wait do so.

    `accounted`: whether Slurm has its database; without one neither age nor fair share counts.
    """

    weights: Weights = Weights()
    flags: frozenset[Flag] = frozenset()
    max_age_seconds: int = 7 * DAY
    favour_small: bool = False
    accounted: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.max_age_seconds <= WEIGHT_MAX:
            remedy = f"from 0 to {WEIGHT_MAX} seconds; 7-0 is a week"
            raise Malformed(f"{self.max_age_seconds} s is no age", field="PriorityMaxAge", remedy=remedy)

    @property
    def counted(self) -> Weights:
        """The weights in force."""
        return self.weights if self.accounted else msgspec.structs.replace(self.weights, age=0, fairshare=0)


_WORDS = {
    "age": "Age",
    "association": "Assoc",
    "fairshare": "FairShare",
    "job_size": "JobSize",
    "partition": "Partition",
    "qos": "QOS",
}
_ABSENT = frozenset({"", "(null)", "none"})


def read_settings(config: Mapping[str, str]) -> Settings:
    """What slurm.conf says, given its settings by name in any case, as `scontrol show config` lists them. Absent ones are as Slurm
    has them. Raises Malformed, naming the setting."""
    said = {name.lower(): text.strip() for name, text in config.items() if text.strip().lower() not in _ABSENT}
    weights = {name: _weight(f"PriorityWeight{word}", said) for name, word in _WORDS.items()}
    priced = parse_weights(said["priorityweighttres"], field="PriorityWeightTRES") if "priorityweighttres" in said else {}
    storage = said.get("accountingstoragetype", "accounting_storage/slurmdbd").lower()
    return Settings(
        weights=Weights(**weights, tres={name: _float(name, exact) for name, exact in priced.items()}),
        flags=parse_flags(said.get("priorityflags", "")),
        max_age_seconds=_age(said.get("prioritymaxage", "7-0")),
        favour_small=said.get("priorityfavorsmall", "no").lower() in {"yes", "true", "1"},
        accounted=storage.endswith("slurmdbd"),
    )


def _age(text: str) -> int:
    return parse_duration(text, field="PriorityMaxAge") if text.strip("0:-") else 0


def _weight(name: str, said: Mapping[str, str]) -> int:
    text = said.get(name.lower(), "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= WEIGHT_MAX):
        raise Malformed(f"{text[:40]!r} is not a weight", field=name, remedy=f"a whole number from 0 to {WEIGHT_MAX}")
    return int(text)


def _float(name: str, exact: Fraction) -> float:
    if name == "billing":
        remedy = "weigh cpu, mem, node or a gres; a job that waits has no billing yet"
        raise Malformed("billing has no weight in priorities", field="PriorityWeightTRES", remedy=remedy)
    return float(exact)
