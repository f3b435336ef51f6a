"""Submission policy of a small site, and a strategy for arbitrary policies."""

from __future__ import annotations

from fractions import Fraction

import msgspec
from hypothesis import strategies as st

from fairbank.bank.rules.short_term import ShortTerm
from fairbank.cluster.partition import Partition
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.slurm.policy_file import (
    AccountRule,
    PolicyAction,
    PolicyBalance,
    PolicyPartition,
    PolicyProject,
    SubmissionPolicy,
)
from tests.support.names import NAMES

WRITTEN = 1_795_000_000

CPU = PolicyPartition(
    Partition("cpu", "cpu", parse_weights("CPU=1.0,Mem=0.5G")),
    {},
    1000,
    30,
    64,
    131_072,
    most_cpus=64,
)
GPU = PolicyPartition(
    Partition("gpu", "gpu", parse_weights("CPU=1.0,Mem=0.09375G,GRES/gpu=12.0")),
    {"a100": 4},
    1000,
    30,
    48,
    512_000,
    most_cpus=48,
)
GPU_T4 = PolicyPartition(
    Partition("gpu-t4", "gpu", parse_weights("CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0")),
    {"t4": 4},
    1000,
    30,
    64,
    131_072,
    most_cpus=64,
)
LONG = PolicyPartition(Partition("long", "cpu", parse_weights("CPU=1.0"), BillingRule.SUM))

ASTRO = PolicyProject("wg_astro", 60_651, "wg_astro", members=(60_601, 60_602))
BIO = PolicyProject("wg_bio", 60_652, "wg_bio", members=(60_602, 60_603))
CHEM = PolicyProject("wg_chem", 60_653, "wg_chem", members=(60_604,))
COURSE = ShortTerm("wg_chem", "gpu-t4", "wg_chem", 0, 2**40)  # at any time of a test

SITE_POLICY = SubmissionPolicy(
    cluster="lab",
    written=WRITTEN,
    projects=(ASTRO, BIO, CHEM),
    partitions=(CPU, GPU, GPU_T4, LONG),
    short_terms=(COURSE,),
    balances=(
        PolicyBalance("wg_astro", "cpu", 750),
        PolicyBalance("wg_astro", "gpu", 6000),
        PolicyBalance("wg_bio", "cpu", 600_000),
        PolicyBalance("wg_chem", "gpu", 600_000),
    ),
    qos_factors={"high": Fraction(3, 2), "low": Fraction(1, 3)},
    exempt=(60_699,),
    qos="normal",
    price=PolicyAction.REFUSE,
    account=AccountRule.GROUP,
    one_partition=True,
)
"""Strict rules, as of the profile "hadm"."""

OPEN_POLICY = msgspec.structs.replace(
    SITE_POLICY,
    account=AccountRule.MEMBER,
    default_partition="cpu",
    one_partition=False,
    short_terms=(),
)
"""What Slurm itself takes, as of the profile "slurm"."""

_clusters = st.text("aZ_09.-", max_size=6).map("n{}".format)
_kinds = st.text("az_09-", max_size=4).map("k{}".format)
_weights = st.builds(
    Fraction, st.integers(0, 10**6), st.sampled_from([1, 2, 5, 16, 1000, 1024, 10_240, 1024**2])
)
_sizes = st.integers(0, 10**9)
_maybe = st.none() | NAMES
_tres = st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "license/ansys@flex1"])

places = st.builds(
    PolicyPartition,
    st.builds(
        Partition,
        NAMES,
        _kinds,
        st.none() | st.dictionaries(_tres, _weights, min_size=1),
        st.sampled_from(BillingRule),
    ),
    st.dictionaries(NAMES, _sizes, max_size=2),
    _sizes,
    _sizes,
    _sizes,
    _sizes,
    st.booleans(),
    _sizes,
)


@st.composite
def policies(draw: st.DrawFn) -> SubmissionPolicy:
    """Draw a policy that a file can hold."""
    partitions = draw(st.lists(places, max_size=3, unique_by=lambda place: place.partition.name))
    closed = st.sampled_from([None, *(place.partition.name for place in partitions)])
    members = st.lists(st.integers(0, 2**32 - 2), max_size=3, unique=True).map(tuple)
    project = st.builds(PolicyProject, NAMES, st.integers(0, 2**32 - 2), NAMES, _maybe, members)
    projects = draw(
        st.lists(
            project,
            max_size=3,
            unique_by=(
                lambda project: project.group,
                lambda project: project.gid,
                lambda project: project.account,
            ),
        )
    )
    accounts = [project.account for project in projects]
    balance = st.builds(
        PolicyBalance, st.sampled_from(accounts or [""]), _kinds, st.integers(-(10**15), 10**15)
    )
    times = st.integers(0, 10**10)
    short_term = st.builds(
        ShortTerm, st.sampled_from(accounts or [""]), closed, _maybe, times, times
    )
    short_terms = st.lists(short_term, max_size=3 if accounts else 0).map(tuple)
    balances = st.lists(
        balance,
        max_size=3 if accounts else 0,
        unique_by=lambda balance: (balance.account, balance.resource),
    ).map(tuple)
    return SubmissionPolicy(
        cluster=draw(_clusters),
        written=draw(st.integers(0, 10**10)),
        projects=tuple(projects),
        partitions=tuple(partitions),
        short_terms=draw(short_terms),
        balances=draw(st.none() | balances),
        qos_factors=draw(
            st.dictionaries(
                NAMES, st.builds(Fraction, st.integers(0, 1000), st.integers(1, 12)), max_size=2
            )
        ),
        qos_resources=draw(st.dictionaries(NAMES, _kinds, max_size=2)),
        exempt=draw(members),
        qos=draw(_maybe),
        price=draw(st.sampled_from(PolicyAction)),
        gres=draw(st.sampled_from(PolicyAction)),
        unlisted=draw(st.sampled_from(PolicyAction)),
        account=draw(st.sampled_from(AccountRule)),
        default_partition=draw(_maybe),
        one_partition=draw(st.booleans()),
        stale_seconds=draw(_sizes),
    )
