"""Policy files: defaults are those of the named policy, given values count, and invalid values are
refused with their key.
"""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from fairbank.core.errors import InvalidInput
from fairbank.priority.settings import Algorithm
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.policies import POLICIES
from fairbank.simulator.engine.policy_settings import policy_of
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.engine.usage_state import PriorityRules


def slurm(text: str) -> SlurmScheduler:
    made = policy_of("own", text.encode()).scheduler(8)
    assert isinstance(made, SlurmScheduler)
    return made


@pytest.mark.parametrize("base", POLICIES)
def test_base_alone_is_the_policy_of_that_name(base: str) -> None:
    result = policy_of("my own", f'base = "{base}"'.encode())
    assert result.name == "my own"
    assert type(result.scheduler(8)) is type(POLICIES[base].scheduler(8))
    if base == "slurm":
        made = slurm('base = "slurm"')
        assert (made.parameters, made.rules) == (SchedulerParameters(), PriorityRules())


def test_all_that_the_file_says_counts() -> None:
    made = slurm("""
        base = "slurm"
        [scheduler]
        bf_interval = 60
        bf_continue = true
        [priority]
        max_age = "1-12"
        favour_small = true
        half_life = "0"
        calc_period = "10"
        fair_share = "depth oblivious"
        dampening = 3
        [priority.weights]
        age = 7
    """)
    assert asdict(made.parameters) == asdict(SchedulerParameters(bf_interval=60, bf_continue=True))
    ranking = made.rules
    assert (ranking.algorithm, ranking.dampening, ranking.decay.half_life, ranking.calc_period) == (
        Algorithm.DEPTH_OBLIVIOUS,
        3,
        0,
        600,
    )
    assert (ranking.settings.max_age_seconds, ranking.settings.favour_small) == (36 * 3_600, True)
    weights = ranking.settings.weights
    assert (weights.age, weights.fairshare, weights.job_size) == (7, 10_000, 1_000)


@pytest.mark.parametrize(
    ("text", "field", "message", "remedy"),
    [
        ("", "base", "base is missing", "add it"),
        ("base = 1", "base", "expected text", "one of: conservative, easy"),
        ('base = "ezzy"', "base", 'is "ezzy", not an accepted value', "easy, fcfs"),
        ("base =", "policy", "not TOML", "fix the line"),
        (
            'bass = "easy"',
            "bass",
            "there is no setting bass",
            "there are: base, scheduler, priority",
        ),
        (
            'base = "easy"\n[scheduler]',
            "scheduler",
            'only for base = "slurm"',
            "leave [scheduler] out",
        ),
        (
            'base = "fifo"\n[priority]',
            "priority",
            'only for base = "slurm"',
            "leave [priority] out",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_intervall = 30',
            "scheduler.bf_intervall",
            "no setting",
            "bf_interval",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_interval = 0',
            "bf_interval",
            "0 is not a bf_interval",
            "from 1 to 10800",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_interval = "30"',
            "scheduler.bf_interval",
            "expected a whole number",
            "accepted: ",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_continue = 1',
            "scheduler.bf_continue",
            "expected true or false",
            "accepted: ",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_min_prio_reserve = 1',
            "scheduler.bf_min_prio_reserve",
            "not simulated",
            "leave it out: each tested job",
        ),
        (
            'base = "slurm"\n[scheduler]\nbf_window_linear = 1',
            "scheduler.bf_window_linear",
            "not simulated",
            "a start is planned",
        ),
        (
            'base = "slurm"\n[priority]\nhalf_life = "a week"',
            "priority.half_life",
            "'a week'",
            "14-0",
        ),
        (
            'base = "slurm"\n[priority]\ncalc_period = "0"',
            "priority.calc_period",
            "'0'",
            "write minutes",
        ),
        (
            'base = "slurm"\n[priority]\ndampening = 2',
            "priority.dampening",
            "Fair Tree knows no dampening",
            "classic",
        ),
        (
            'base = "slurm"\n[priority]\nfair_share = "fair"',
            "priority.fair_share",
            'is "fair", not an accepted value',
            "fair tree, classic, depth oblivious",
        ),
        (
            'base = "slurm"\n[priority.weights]\nage = -1',
            "priority.weights.age",
            "at least 0",
            "accepted: ",
        ),
        (
            'base = "slurm"\n[priority.weights]\nqos = 1',
            "priority.weights.qos",
            "no setting",
            "age, fairshare, job_size",
        ),
    ],
)
def test_impossible_value_is_refused_with_its_key(
    text: str, field: str, message: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as no:
        policy_of("own", text.encode())
    assert no.value.field == field
    assert message in no.value.message
    assert remedy in (no.value.remedy or "")


@pytest.mark.parametrize(
    ("scheduler", "remarks"),
    [
        (
            "bf_interval = 30\nbf_continue = false\nsched_min_interval = 2\n"
            "bf_max_job_array_resv = 20\nbf_licenses = false",
            [],
        ),
        ("bf_continue = true\nsched_min_interval = 999999",
        ["changes nothing here: bf_continue, sched_min_interval"]),
        ("sched_min_interval = 1000000", []),
        ("bf_max_time = 60\nassoc_limit_stop = true",
        ["changes nothing here: assoc_limit_stop, bf_max_time"]),
        ("Ignore_NUMA = true", ["changes nothing here: ignore_numa"]),
        ("defer = true\nbf_licenses = true",
        ["not simulated, and passed over: defer, bf_licenses"]),
        ("preempt_reorder_count = 5\nbf_one_resv_per_job = true", [
            "changes nothing here: bf_one_resv_per_job",
            "not simulated, and passed over: preempt_reorder_count",
        ]),
    ],
)  # fmt: skip
def test_unused_key_of_a_policy_file_is_reported(scheduler: str, remarks: list[str]) -> None:
    assert policy_of("own", f'base = "slurm"\n[scheduler]\n{scheduler}'.encode()).remarks == remarks
