"""TRES: quantities that a job holds (CPUs, memory, GPUs, ...), billing weights, billing rules.

Weights are exact decimal fractions; Slurm keeps doubles. Source: slurm.conf(5), TRESBillingWeights
and PriorityFlags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from fairbank.core.errors import InvalidInput

Counts = Mapping[str, Fraction]
"""Quantity of each TRES by lower-case name; memory and burst buffers in MiB."""

Weights = Mapping[str, Fraction]
"""Billing units per unit of each TRES (memory: per MiB)."""

BY_CPU: Weights = {"cpu": Fraction(1)}
"""Weights of a partition that sets none."""


class BillingRule(Enum):
    """Rule by which weighted TRES become the billing value."""

    SUM = "sum"
    MAX_TRES = "max_tres"
    MAX_TRES_GRES = "max_tres_gres"


_PLAIN = frozenset({"cpu", "mem", "energy", "node", "billing", "vmem", "pages"})
_NAMED = ("gres/", "license/", "bb/", "fs/", "ic/")
_NAME = re.compile(r"[^\x00-\x20\x7f,=]{1,255}")
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})([A-Za-z]{0,2})", re.ASCII)
_LONG = re.compile(r"[\d.]{19,}[A-Za-z]{0,2}", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,9}")
_LEVELS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def tres_name(text: str, *, field: str = "tres") -> str:
    """Return the canonical TRES name: lower case, `gpu` as `gres/gpu`.

    Raises:
        InvalidInput: the TRES is unknown; the error names `field`.
    """
    name = text.lower()
    if name == "gpu" or name.startswith("gpu:"):
        name = f"gres/{name}"
    named = next((name.removeprefix(kind) for kind in _NAMED if name.startswith(kind)), "")
    if name in _PLAIN or (named.isprintable() and _NAME.fullmatch(named)):
        return name
    raise InvalidInput(
        f"{text[:40]!r} is not a TRES",
        field=field,
        remedy="known are cpu, mem, node, gres/NAME (gpu), license/NAME, bb/NAME, fs/NAME, energy",
    )


def _is_in_mebibytes(name: str) -> bool:
    return name == "mem" or name.startswith("bb/")


# Many jobs have the same TRES, and each job reports them at its start and its end. To parse them
# again was a fifth of the bank's processor time for a report of the agent.
@lru_cache(maxsize=1_000)
def _pairs(text: str, field: str) -> Sequence[tuple[str, Fraction, str]]:
    pairs: list[tuple[str, Fraction, str]] = []
    for part in text.split(","):
        written, _, value = part.strip().partition("=")
        match = _NUMBER.fullmatch(value)
        if match is None:
            if _LONG.fullmatch(value):
                raise InvalidInput(
                    f"the number in {part[:40]!r} is too long",
                    field=field,
                    remedy="at most 18 digits",
                )
            raise InvalidInput(
                f"{part[:40]!r} is not NAME=NUMBER",
                field=field,
                remedy="write for example cpu=8,mem=16G,gres/gpu=1",
            )
        name = tres_name(written, field=field)
        if any(name == known for known, _, _ in pairs):
            raise InvalidInput(f"{name} is given twice", field=field, remedy="give each TRES once")
        pairs.append((name, Fraction(match[1]), match[2]))
    return tuple(pairs)


def parse_counts(text: str, *, field: str = "tres") -> dict[str, Fraction]:
    """Parse the TRES that a job or node has: `cpu=4,mem=16G,gres/gpu:a100=1`.

    A GRES that is only given by its types also counts without them, as the sum of its types.
    slurmctld keeps both counts, but reports only those in AccountingStorageTRES.

    Raises:
        InvalidInput: the text is invalid; the error names `field`.
    """
    counts = parse_quantities(text, field=field)
    sums: dict[str, Fraction] = {}
    for name, count in counts.items():
        base, _, kind = name.partition(":")
        if kind and base.startswith("gres/") and base not in counts:
            sums[base] = sums.get(base, Fraction(0)) + count
    return counts | sums


def parse_quantities(text: str, *, field: str) -> dict[str, Fraction]:
    """Parse quantities of TRES as they are written; a limit of a type limits no other.

    Sizes are in MiB unless they have a suffix K, M, G, T or P (powers of 1024).

    Raises:
        InvalidInput: the text is invalid; the error names `field`.
    """
    counts = {}
    for name, number, suffix in _pairs(text, field):
        if not suffix:
            counts[name] = number
            continue
        level = _LEVELS.get(suffix[0].upper())
        if level is None or suffix[1:].upper() not in ("", "B"):
            raise InvalidInput(
                f"{suffix!r} is not a size suffix", field=field, remedy="use K, M, G, T or P"
            )
        counts[name] = number * Fraction(1024) ** (level - (2 if _is_in_mebibytes(name) else 0))
    return counts


def gpu_count(text: str) -> int:
    """Return the number of GPUs of a TRES text: that of `gres/gpu`, else the sum of its types.

    Of a number only the digits at its beginning count, at most 9 of them: Slurm counts whole GPUs,
    and sums of seconds must fit a database. Databases count the same (`store.sql.conditions`).
    """
    counts: dict[str, int] = {}
    for part in text.lower().split(","):
        name, _, number = part.partition("=")
        kind, _, model = name.removeprefix("gres/").partition(":")
        if kind == "gpu":
            digits = _DIGITS.match(number)
            counts[model] = int(digits[0]) if digits else 0
    return counts.get("", sum(counts.values()))


def parse_job_tres(text: str, *, prices: bool = True, field: str = "tres") -> dict[str, Fraction]:
    """Parse the TRES of a job, which must hold at least one whole CPU.

    Args:
        text: the TRES string.
        prices: whether these TRES set the price; then the CPUs must be present, since a job without
            them would be priced by its other TRES, perhaps at nothing.
        field: the name of the field for errors.

    Raises:
        InvalidInput: the text is invalid or the CPUs are missing or fractional.
    """
    counts = parse_counts(text, field=field)
    cpus = counts.get("cpu", Fraction(0 if prices else 1))
    if cpus < 1 or cpus.denominator != 1:
        raise InvalidInput(
            "a job holds at least one CPU, and whole ones",
            field=field,
            remedy="give its number of CPUs: cpu=1 or more",
        )
    return counts


def parse_weights(text: str, *, field: str = "weights") -> dict[str, Fraction]:
    """Parse a TRESBillingWeights string. One invalid token makes the whole string invalid, as in
    Slurm.

    A suffix divides the weight by 1024 for each level above the base of the TRES (M for memory and
    burst buffers, none otherwise); a suffix at or below the base has no effect. Only its first
    character counts. Mem=0.5G is half a billing unit per GiB.

    Raises:
        InvalidInput: the text is invalid; the error names `field`.
    """
    weights = {}
    for name, number, suffix in _pairs(text, field):
        level = _LEVELS.get(suffix[:1].upper(), 0)
        if suffix and not level:
            raise InvalidInput(
                f"{suffix!r} is not a weight suffix", field=field, remedy="use K, M, G, T or P"
            )
        weights[name] = number / Fraction(1024) ** max(
            0, level - (2 if _is_in_mebibytes(name) else 0)
        )
    return weights


def billing(counts: Counts, weights: Weights | None, adding: BillingRule) -> Fraction:
    """Return the billing units of a job.

    Args:
        counts: amount of each TRES that the job holds.
        weights: weights of its partition; None bills its CPUs.
        adding: rule that combines the weighted TRES.
    """
    weighted = weigh(counts, weights)
    chosen = price_setting_tres(weighted, adding)
    return sum((value for name, value in weighted.items() if name in chosen), Fraction(0))


def weigh(counts: Counts, weights: Weights | None) -> dict[str, Fraction]:
    """Return the billing units of each TRES that has a weight."""
    return {
        name: counts[name] * weight
        for name, weight in (weights or BY_CPU).items()
        if name in counts and name != "billing"
    }


def unpriced_tres(counts: Counts, weights: Weights | None) -> list[str]:
    """Return the TRES that cost nothing because they have no weight, sorted; nodes are left out.

    As in Slurm a type needs its own weight: GRES/gpu:v100 does not price gres/gpu:t4. A job
    with GPUs of a type has both counts (`parse_counts`) and is priced by either.
    """
    priced = set(weights or BY_CPU)
    free = {name for name, count in counts.items() if count > 0} - priced - {"node", "billing"}
    same_kind = {name.partition(":")[0] for name in priced & set(counts)}
    return sorted(name for name in free if name.partition(":")[0] not in same_kind)


def price_setting_tres(weighted: Mapping[str, Fraction], adding: BillingRule) -> frozenset[str]:
    """Return the TRES that make up the price: under a MAX rule only the largest candidate."""
    competing = [name for name in weighted if is_max_candidate(name, adding)]
    others = frozenset(weighted).difference(competing)
    return others | {max(competing, key=lambda name: weighted[name])} if competing else others


def is_max_candidate(name: str, adding: BillingRule) -> bool:
    """Return whether the rule bills only the largest of this TRES and others like it.

    Candidates are cpu, mem, node and every gres/* under MAX_TRES; cpu, mem and node under
    MAX_TRES_GRES. All other TRES are added.
    """
    if adding is BillingRule.SUM:
        return False
    return name in ("cpu", "mem", "node") or (
        name.startswith("gres/") and adding is BillingRule.MAX_TRES
    )
