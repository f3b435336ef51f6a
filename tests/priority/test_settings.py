"""Priorities as slurm.conf spells them."""

from __future__ import annotations

import math

import pytest

from fairbank.priority.multifactor.settings import RAW, Flag, Settings, Weights, parse_flags, read_settings, uses_fair_tree
from fairbank.values.time import DAY
from fairbank.values.trouble import Malformed


def test_what_scontrol_lists_is_read() -> None:
    config = {
        "PriorityFavorSmall": "No",
        "PriorityFlags": "CALCULATE_RUNNING,NO_NORMAL_QOS",
        "PriorityMaxAge": "14-00:00:00",
        "PriorityWeightAge": "1000",
        "PriorityWeightAssoc": "7",
        "PriorityWeightFairShare": "10000",
        "PriorityWeightJobSize": "500",
        "PriorityWeightPartition": "1000",
        "PriorityWeightQOS": "2000",
        "PriorityWeightTRES": "CPU=1000,Mem=0.25G,GRES/gpu=2000.5",
        "AccountingStorageType": "accounting_storage/slurmdbd",
    }
    assert read_settings(config) == Settings(
        weights=Weights(
            age=1_000,
            association=7,
            fairshare=10_000,
            job_size=500,
            partition=1_000,
            qos=2_000,
            tres={"cpu": 1_000.0, "mem": 0.25 / 1024, "gres/gpu": 2_000.5},
        ),
        flags=frozenset({Flag.CALCULATE_RUNNING, Flag.NO_NORMAL_QOS}),
        max_age_seconds=14 * DAY,
    )


def test_what_is_not_said_is_as_slurm_has_it() -> None:
    assert read_settings({}) == read_settings({"PriorityWeightTRES": "(null)", "PriorityFlags": ""}) == Settings()
    assert Settings().max_age_seconds == 7 * DAY


def test_names_are_known_in_any_case() -> None:
    told = read_settings({"priorityweightage": "5", "PRIORITYFAVORSMALL": "YES", "PriorityMaxAge": "0"})
    assert (told.weights.age, told.favour_small, told.max_age_seconds) == (5, True, 0)


def test_without_its_database_neither_age_nor_fair_share_counts() -> None:
    told = read_settings({"AccountingStorageType": "accounting_storage/none", "PriorityWeightAge": "5", "PriorityWeightQOS": "6"})
    assert (told.counted.age, told.counted.qos) == (0, 6)


@pytest.mark.parametrize("flag", list(Flag))
def test_each_flag_is_found_by_its_word(flag: Flag) -> None:
    assert parse_flags(flag.value.lower()) == {flag}
    assert parse_flags(f"SOMETHING_NEW,{flag.value}") == {flag}


def test_flags_are_looked_for_as_slurm_does() -> None:
    assert parse_flags("") == frozenset()
    assert parse_flags("no_normal_all") == RAW
    assert parse_flags("NO_NORMAL_TRES incr_only") == {Flag.NO_NORMAL_TRES, Flag.INCR_ONLY}
    assert parse_flags("MAX_TRES_GRES,DEPTH_OBLIVIOUS") == frozenset()


@pytest.mark.parametrize(("flags", "tree"), [("", True), ("FAIR_TREE", True), ("NO_FAIR_TREE", False), ("depth_oblivious", False)])
def test_fair_tree_is_on_unless_told_otherwise(flags: str, tree: bool) -> None:
    assert uses_fair_tree(flags) is tree


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"PriorityWeightAge": "-1"}, "PriorityWeightAge"),
        ({"PriorityWeightQOS": "nan"}, "PriorityWeightQOS"),
        ({"PriorityWeightFairshare": "4294967296"}, "PriorityWeightFairShare"),
        ({"PriorityWeightTRES": "cpu=inf"}, "PriorityWeightTRES"),
        ({"PriorityWeightTRES": "cpu=1,billing=1"}, "PriorityWeightTRES"),
        ({"PriorityMaxAge": "UNLIMITED"}, "PriorityMaxAge"),
    ],
)
def test_what_cannot_be_read_is_named(config: dict[str, str], field: str) -> None:
    with pytest.raises(Malformed) as told:
        read_settings(config)
    assert told.value.field == field
    assert told.value.remedy


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
def test_a_weight_of_no_number_is_refused_wherever_it_comes_from(bad: float) -> None:
    with pytest.raises(Malformed) as told:
        Weights(tres={"cpu": 1.0, "mem": bad})
    assert (told.value.field, "mem=" in told.value.message) == ("PriorityWeightTRES", True)
    with pytest.raises(Malformed) as told:
        Weights(age=bad)  # type: ignore[arg-type]
    assert told.value.field == "PriorityWeightAge"
    with pytest.raises(Malformed):
        Settings(max_age_seconds=-1)
