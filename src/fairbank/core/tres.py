"""TRES: what a job holds (CPUs, memory, GPUs, ...), the weights that price it, and Slurm's three ways of adding up.

Everything is exact: weights are read as decimal fractions, where Slurm keeps doubles. The rules are those of
slurm.conf(5), TRESBillingWeights and PriorityFlags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction

from fairbank.core.errors import Malformed

Counts = Mapping[str, Fraction]
"""How much of each TRES, by its lower-case name; memory and burst buffers in MiB."""

Weights = Mapping[str, Fraction]
"""Billing units for one of each TRES (memory: for one MiB)."""

BY_CPU: Weights = {"cpu": Fraction(1)}
"""What counts where no weights are set."""


class BillingRule(Enum):
    """How weighted TRES become one billing figure."""

    SUM = "sum"
    MAX_TRES = "max_tres"
    MAX_TRES_GRES = "max_tres_gres"


_PLAIN = frozenset({"cpu", "mem", "energy", "node", "billing", "vmem", "pages"})
_NAMED = ("gres/", "license/", "bb/", "fs/", "ic/")
_PAIR = re.compile(
    r"([A-Za-z][\w/:.-]*)=(\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})([A-Za-z]{0,2})", re.ASCII
)
_LONG = re.compile(r"[A-Za-z][\w/:.-]*=[\d.]{19,}[A-Za-z]{0,2}", re.ASCII)
_LEVELS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def tres_name(text: str, *, field: str = "tres") -> str:
    """The TRES's one spelling: lower case, and `gpu` for people who leave out `gres/`. Raises Malformed, naming `field`, when unknown."""
    name = text.lower()
    if name == "gpu" or name.startswith("gpu:"):
        name = f"gres/{name}"
    if name in _PLAIN or any(name.startswith(kind) and len(name) > len(kind) for kind in _NAMED):
        return name
    raise Malformed(
        f"{text[:40]!r} is not a TRES",
        field=field,
        remedy="known are cpu, mem, node, gres/NAME (gpu), license/NAME, bb/NAME, fs/NAME, energy",
    )


def _in_mebibytes(name: str) -> bool:
    return name == "mem" or name.startswith("bb/")


def _pairs(text: str, field: str) -> list[tuple[str, Fraction, str]]:
    pairs: list[tuple[str, Fraction, str]] = []
    for part in text.split(","):
        match = _PAIR.fullmatch(part.strip())
        if match is None:
            if _LONG.fullmatch(part.strip()):
                raise Malformed(
                    f"the number in {part[:40]!r} is too long",
                    field=field,
                    remedy="at most 18 digits",
                )
            raise Malformed(
                f"{part[:40]!r} is not NAME=NUMBER",
                field=field,
                remedy="write for example cpu=8,mem=16G,gres/gpu=1",
            )
        name = tres_name(match[1], field=field)
        if any(name == known for known, _, _ in pairs):
            raise Malformed(f"{name} is given twice", field=field, remedy="give each TRES once")
        pairs.append((name, Fraction(match[2]), match[3]))
    return pairs


def parse_counts(text: str, *, field: str = "tres") -> dict[str, Fraction]:
    """Read `cpu=4,mem=16G,gres/gpu=1`. Sizes in MiB unless a suffix K, M, G, T or P (steps of 1024) says otherwise.

    Raises Malformed, naming `field`.
    """
    counts = {}
    for name, number, suffix in _pairs(text, field):
        if not suffix:
            counts[name] = number
            continue
        level = _LEVELS.get(suffix[0].upper())
        if level is None or suffix[1:].upper() not in ("", "B"):
            raise Malformed(
                f"{suffix!r} is not a size suffix", field=field, remedy="use K, M, G, T or P"
            )
        counts[name] = number * Fraction(1024) ** (level - (2 if _in_mebibytes(name) else 0))
    return counts


def parse_job_tres(text: str, *, prices: bool = True, field: str = "tres") -> dict[str, Fraction]:
    """`parse_counts` for a job that is to run: it holds whole CPUs, at least one, and where this is what `prices` it they are told.

    Without them it would be priced by whatever else is there, perhaps by nothing. Raises Malformed, naming `field`.
    """
    counts = parse_counts(text, field=field)
    cpus = counts.get("cpu", Fraction(0 if prices else 1))
    if cpus < 1 or cpus.denominator != 1:
        raise Malformed(
            "a job holds at least one CPU, and whole ones",
            field=field,
            remedy="say how many it holds: cpu=1 or more",
        )
    return counts


def parse_weights(text: str, *, field: str = "weights") -> dict[str, Fraction]:
    """Read a TRESBillingWeights string with Slurm's suffix rule; one bad token spoils the whole string, as in Slurm.

    A suffix divides the weight by 1024 for each level above the TRES's base (M for memory and burst buffers, none
    otherwise); a suffix at or below the base changes nothing; only its first letter counts. So Mem=0.5G is a half for each GiB.
    """
    weights = {}
    for name, number, suffix in _pairs(text, field):
        level = _LEVELS.get(suffix[:1].upper(), 0)
        if suffix and not level:
            raise Malformed(
                f"{suffix!r} is not a weight suffix", field=field, remedy="use K, M, G, T or P"
            )
        weights[name] = number / Fraction(1024) ** max(0, level - (2 if _in_mebibytes(name) else 0))
    return weights


def billing(counts: Counts, weights: Weights | None, adding: BillingRule) -> Fraction:
    """The billing units of a job that holds `counts`: without weights its CPUs, else the weighted TRES added up."""
    weighted = weigh(counts, weights)
    chosen = price_setting_tres(weighted, adding)
    return sum((value for name, value in weighted.items() if name in chosen), Fraction(0))


def weigh(counts: Counts, weights: Weights | None) -> dict[str, Fraction]:
    """Each TRES of `counts` that has a weight, in billing units."""
    return {
        name: counts[name] * weight
        for name, weight in (weights or BY_CPU).items()
        if name in counts and name != "billing"
    }


def unpriced_tres(counts: Counts, weights: Weights | None) -> list[str]:
    """What of `counts` has no weight and so costs nothing, in alphabetical order: nodes aside, which every job has.

    As in Slurm a type has a weight of its own: GRES/gpu prices no gres/gpu:v100, nor the other way round. A job that holds
    both, as Slurm counts them, is priced by either.
    """
    priced = set(weights or BY_CPU)
    free = {name for name, count in counts.items() if count > 0} - priced - {"node", "billing"}
    told = {name.partition(":")[0] for name in priced & set(counts)}
    return sorted(name for name in free if name.partition(":")[0] not in told)


def price_setting_tres(weighted: Mapping[str, Fraction], adding: BillingRule) -> frozenset[str]:
    """Which of the weighted TRES make the price: under a MAX rule only the dearest of the competing ones."""
    competing = [name for name in weighted if is_max_candidate(name, adding)]
    others = frozenset(weighted).difference(competing)
    return others | {max(competing, key=lambda name: weighted[name])} if competing else others


def is_max_candidate(name: str, adding: BillingRule) -> bool:
    """Whether only the dearest of this TRES and its like is billed: under MAX_TRES cpu, mem, node and every gres/*, under
    MAX_TRES_GRES cpu, mem and node. All others are added."""
    if adding is BillingRule.SUM:
        return False
    return name in ("cpu", "mem", "node") or (
        name.startswith("gres/") and adding is BillingRule.MAX_TRES
    )
