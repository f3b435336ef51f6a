"""How slurmctld ranks jobs: the settings of its priority plug-in, out of `scontrol show config`, of any version."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fairbank.slurm.answers import words
from fairbank.values.tres import parse_weights
from fairbank.values.trouble import Malformed

_LENGTH = re.compile(r"(?:(\d{1,6})-)?(\d{1,9}):(\d\d):(\d\d)", re.ASCII)
_YES = {"yes": True, "no": False}
WEIGHT_MAX = 2**32 - 1


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of time in seconds; `half_life` 0 means that usage does not fade. `flags` in capitals. `tres` are the weights of
    PriorityWeightTRES by the names of TRES, `tres_text` the same as the settings have them."""

    multifactor: bool
    age: int
    association: int
    fair_share: int
    size: int
    partition: int
    qos: int
    tres: Mapping[str, float]
    tres_text: str
    flags: frozenset[str]
    half_life: int
    period: int
    max_age: int
    reset: str
    favor_small: bool
    dampening: int

    @property
    def fair_tree(self) -> bool:
        """Whether Fair Tree ranks users; else the classic rule does."""
        return not self.flags & {"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"}


def read_settings(config: Mapping[str, str]) -> Settings:
    """Of what `scontrol.read_config` found. Raises Malformed, naming the setting, for what is missing or no figure."""
    tres = config.get("PriorityWeightTRES", "")
    return Settings(
        multifactor=_needed(config, "PriorityType") == "priority/multifactor",
        age=_weight(config, "Age"),
        association=_weight(config, "Assoc"),
        fair_share=_weight(config, "FairShare"),
        size=_weight(config, "JobSize"),
        partition=_weight(config, "Partition"),
        qos=_weight(config, "QOS"),
        tres={name: float(weight) for name, weight in parse_weights(tres, field="PriorityWeightTRES").items()} if tres else {},
        tres_text=tres,
        flags=frozenset(filter(None, config.get("PriorityFlags", "").upper().split(","))),
        half_life=_seconds(config, "PriorityDecayHalfLife"),
        period=_seconds(config, "PriorityCalcPeriod"),
        max_age=_seconds(config, "PriorityMaxAge"),
        reset=_needed(config, "PriorityUsageResetPeriod"),
        favor_small=_YES.get(_needed(config, "PriorityFavorSmall").lower(), False),
        dampening=words.number(_needed(config, "FairShareDampeningFactor"), "FairShareDampeningFactor", most=65533),
    )


def _needed(config: Mapping[str, str], name: str) -> str:
    if name in config:
        return config[name]
    raise Malformed("is not there", field=name, remedy="ask slurmctld itself: scontrol show config")


def _weight(config: Mapping[str, str], name: str) -> int:
    return words.number(_needed(config, f"PriorityWeight{name}"), f"PriorityWeight{name}", most=WEIGHT_MAX)


def _seconds(config: Mapping[str, str], name: str) -> int:
    text = _needed(config, name)
    if text in ("UNLIMITED", "INFINITE"):
        return 0
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise Malformed(f"{words.shown(text)} is not a length of time", field=name)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
