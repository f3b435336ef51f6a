"""Settings of fair share and job priorities, read from `scontrol show config`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.core.tres import BillingRule
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.settings import (
    RAW,
    Algorithm,
    FairShare,
    Flag,
    MultifactorSettings,
    PrioritySettings,
    PriorityWeights,
)
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.output import RecordedOutput
from fairbank.slurm.parsers.config import (
    are_flags_uncertain,
    read_algorithm,
    read_billing_rule,
    read_config,
    read_flags,
    read_settings,
)
from tests.support.fairshare_recordings import printed


def config(**changed: str) -> dict[str, str]:
    return {**read_config(printed("fair-tree", "config")), **changed}


def test_settings_of_2205() -> None:
    assert read_settings(config()) == PrioritySettings(
        factors=MultifactorSettings(
            weights=PriorityWeights(
                age=1_000,
                association=500,
                fairshare=100_000,
                job_size=1_000,
                partition=1_000,
                qos=1_000,
                tres={"cpu": 1_000.0, "mem": 2_000.0, "gres/gpu": 3_000.0},
            )
        ),
        fair_share=FairShare(half_life_seconds=7 * DAY, tick_seconds=60),
    )


def test_classic_rule_of_2205() -> None:
    settings = read_settings(read_config(printed("classic", "config")))
    assert (settings.fair_share.algorithm, settings.fair_share.dampening) == (Algorithm.CLASSIC, 1)
    assert settings.factors.weights == PriorityWeights(
        fairshare=100_000, partition=1_000, qos=1_000
    )


def test_rare_settings_are_read() -> None:
    settings = read_settings(
        config(
            PriorityFlags="CALCULATE_RUNNING,NO_NORMAL_QOS",
            PriorityFavorSmall="Yes",
            PriorityDecayHalfLife="00:00:00",
            PriorityUsageResetPeriod="QUARTERLY",
            PriorityMaxAge="14-00:00:00",
            PriorityWeightTRES="Mem=0.25G,GRES/gpu=2000.5",
            AccountingStorageType="accounting_storage/none",
        )
    )
    factors, fair_share = settings.factors, settings.fair_share
    assert factors.flags == {Flag.CALCULATE_RUNNING, Flag.NO_NORMAL_QOS}
    assert (factors.favour_small, factors.accounted) == (True, False)
    assert (factors.max_age_seconds, factors.weights.tres) == (
        14 * DAY,
        {"mem": 0.25 / 1024, "gres/gpu": 2_000.5},
    )
    assert (fair_share.half_life_seconds, fair_share.reset) == (0, Reset.QUARTERLY)


def test_setting_names_ignore_case() -> None:
    settings = read_settings({name.swapcase(): text for name, text in config().items()})
    assert settings == read_settings(config())


def test_other_priority_plugin_has_no_factors() -> None:
    assert read_settings({"PriorityType": "priority/basic"}) == PrioritySettings(by_factors=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PriorityWeightAge", "many"),
        ("PriorityWeightAge", "-1"),
        ("PriorityWeightFairShare", "nan"),
        ("PriorityWeightQOS", "4294967296"),
        ("PriorityDecayHalfLife", "7 days"),
        ("PriorityMaxAge", ""),
        ("PriorityMaxAge", "UNLIMITED"),
        ("PriorityUsageResetPeriod", "SOMETIMES"),
        ("PriorityFavorSmall", "maybe"),
        ("PriorityWeightTRES", "cpu=lots"),
        ("PriorityWeightTRES", "cpu=inf"),
        ("PriorityWeightTRES", "cpu=1,billing=1"),
        ("FairShareDampeningFactor", "-1"),
        ("FairShareDampeningFactor", "0"),
        ("PriorityCalcPeriod", None),
        ("PriorityType", None),
    ],
)
def test_damaged_or_missing_setting_is_named(name: str, value: str | None) -> None:
    settings = config()
    del settings[name]
    if value is not None:
        settings[name] = value
    with pytest.raises(InvalidInput) as error:
        read_settings(settings)
    assert error.value.field == name
    assert re.fullmatch(
        r"Slurm writes 7-00:00:00|a whole number from [01] to \d+|ask slurmctld itself: .*|"
        r"one of NONE, NOW, .*|weigh cpu, mem, node or a gres.*|write for example cpu=8,.*",
        error.value.remedy or "",
    )


@pytest.mark.parametrize("flag", list(Flag))
def test_each_flag_is_read(flag: Flag) -> None:
    assert read_flags(flag.value.lower()) == {flag}
    assert read_flags(f"SOMETHING_NEW,{flag.value}") == {flag}


def test_flags_are_searched_as_slurm_does() -> None:
    assert read_flags("") == frozenset()
    assert read_flags("no_normal_all") == RAW
    assert read_flags("NO_NORMAL_TRES incr_only") == {Flag.NO_NORMAL_TRES, Flag.INCR_ONLY}
    assert read_flags("MAX_TRES_GRES,DEPTH_OBLIVIOUS") == frozenset()


@pytest.mark.parametrize(
    ("flags", "algorithm"),
    [
        ("", Algorithm.FAIR_TREE),
        ("FAIR_TREE,MAX_TRES", Algorithm.FAIR_TREE),
        ("NO_FAIR_TREE", Algorithm.CLASSIC),
        ("depth_oblivious", Algorithm.DEPTH_OBLIVIOUS),
        ("NO_FAIR_TREE,DEPTH_OBLIVIOUS", Algorithm.DEPTH_OBLIVIOUS),
    ],
)
def test_fair_tree_is_the_default(flags: str, algorithm: Algorithm) -> None:
    assert read_algorithm(flags) is algorithm


@pytest.mark.parametrize(
    ("flags", "adding"),
    [
        ("", BillingRule.SUM),
        ("ACCRUE_ALWAYS", BillingRule.SUM),
        ("NO_FAIR_TREE,max_tres", BillingRule.MAX_TRES),
        ("fair_tree,MAX_TRES_GRES", BillingRule.MAX_TRES_GRES),
        ("MAX_TRES_GRES,MAX_TRES", BillingRule.MAX_TRES_GRES),
    ],
)
def test_flags_select_the_billing_rule(flags: str, adding: BillingRule) -> None:
    assert read_billing_rule(flags) is adding


# NO_NORMAL_ALL: 22.05 prints it for any one of its four flags.


def test_only_no_normal_all_is_uncertain() -> None:
    assert are_flags_uncertain(config(PriorityFlags="NO_NORMAL_ALL,MAX_TRES"))
    assert not are_flags_uncertain(config(PriorityFlags="MAX_TRES,NO_FAIR_TREE"))


def test_flags_of_slurm_conf_take_precedence() -> None:
    uncertain = config(PriorityFlags="NO_NORMAL_ALL")
    assert read_settings(uncertain).factors.flags == RAW
    assert read_settings(uncertain, "NO_NORMAL_QOS").factors.flags == {Flag.NO_NORMAL_QOS}


@pytest.mark.parametrize(
    ("conf", "flags"),
    [("PriorityFlags=NO_NORMAL_TRES\n", {Flag.NO_NORMAL_TRES}), ("ClusterName=lab\n", RAW)],
)
def test_slurm_conf_is_read_if_it_exists(tmp_path: Path, conf: str, flags: frozenset[Flag]) -> None:
    (tmp_path / "slurm.conf").write_text(conf)
    text = printed("fair-tree", "config").replace(
        "PriorityFlags           = MAX_TRES", "PriorityFlags           = NO_NORMAL_ALL"
    )
    (tmp_path / "config.txt").write_text(text)
    assert RecordedOutput(str(tmp_path)).priority_settings().factors.flags == flags
    commands = SlurmCommands({})
    commands.config = {**read_config(text), "SLURM_CONF": str(tmp_path / "slurm.conf")}
    assert commands.priority_settings().factors.flags == flags
    commands.config = {**commands.config, "SLURM_CONF": str(tmp_path / "elsewhere.conf")}
    assert commands.priority_settings().factors.flags == RAW
