"""Policy file: Lua reads the values that Python writes, and reports each error in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from fairbank.bank.rules.short_term import ShortTerm
from fairbank.cluster.partition import Partition
from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, BillingRule
from fairbank.slurm.explain.admission_rules import read_admission_rules
from fairbank.slurm.policy_file import (
    POLICY_SIZE_MAX,
    AccountRule,
    PolicyAction,
    PolicyBalance,
    PolicyHeader,
    PolicyPartition,
    PolicyProject,
    SubmissionPolicy,
    read_header,
    render,
)
from tests.plugins.interpreter import Lua
from tests.plugins.policies import ASTRO, BIO, COURSE, CPU, OPEN_POLICY, SITE_POLICY, policies

TEXT = render(SITE_POLICY)


def project_of(table: Any) -> PolicyProject:
    return PolicyProject(
        table.group,
        int(table.gid),
        table.account,
        table.qos,
        members=tuple(map(int, table.members.split())),
    )


def partition_of(table: Any) -> PolicyPartition:
    weights = {
        weight.name: Fraction(int(weight.number), int(table.denominator))
        for weight in table.weights.values()
    }
    partition = Partition(table.name, table.resource, weights, BillingRule(table.adding))
    return PolicyPartition(
        partition,
        {kind: int(table.node_gpus[kind]) for kind in table.gpus.values()},
        memory_per_cpu=int(table.memory_per_cpu),
        default_minutes=int(table.default_minutes),
        node_cpus=int(table.node_cpus),
        node_memory=int(table.node_memory),
        exclusive=table.whole_nodes,
        most_cpus=int(table.most_cpus),
    )


def policy_of(table: Any) -> SubmissionPolicy:
    """Return the policy that Lua has read."""
    balances = tuple(
        PolicyBalance(project.account, resource, int(available))
        for project in table.projects.values()
        for resource, available in project.available.items()
    )
    return SubmissionPolicy(
        cluster=table.cluster,
        written=int(table.written),
        projects=tuple(project_of(project) for project in table.projects.values()),
        partitions=tuple(
            partition_of(table.partitions[name]) for name in table.partition_names.values()
        ),
        short_terms=tuple(
            ShortTerm(
                short.account, short.partition, short.reservation, int(short.first), int(short.over)
            )
            for short in table.short_terms.values()
        ),
        balances=balances if table.balances == "included" else None,
        qos_factors={
            name: Fraction(int(number), int(table.scale)) for name, number in table.factors.items()
        },
        qos_resources=dict(table.resources.items()),
        exempt=tuple(int(uid) for uid in table.exempt),
        qos=table.qos or None,
        price=PolicyAction(table.price),
        gres=PolicyAction(table.gres),
        unlisted=PolicyAction(table.unlisted),
        account=AccountRule(table.account),
        default_partition=table.default or None,
        one_partition=table.list == "refuse",
        stale_seconds=int(table.stale),
    )


@dataclass(frozen=True)
class SortedPolicy:
    """Policy whose unordered parts are sorted."""

    value: SubmissionPolicy

    @classmethod
    def of(cls, policy: SubmissionPolicy) -> SortedPolicy:
        projects = tuple(
            msgspec.structs.replace(project, members=tuple(sorted(project.members)))
            for project in policy.projects
        )
        places = tuple(
            msgspec.structs.replace(
                partition,
                partition=msgspec.structs.replace(
                    partition.partition, weights=dict(partition.partition.weights or BY_CPU)
                ),
            )
            for partition in policy.partitions
        )
        balances = (
            None
            if policy.balances is None
            else tuple(
                sorted(policy.balances, key=lambda balance: (balance.account, balance.resource))
            )
        )
        return cls(
            msgspec.structs.replace(
                policy,
                projects=projects,
                partitions=places,
                balances=balances,
                exempt=tuple(sorted(policy.exempt)),
            )
        )


@given(policy=policies())
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_lua_reads_what_python_writes(lua: Lua, policy: SubmissionPolicy) -> None:
    table = lua.module("policy_file").parse(render(policy))
    assert not isinstance(table, tuple), table
    assert SortedPolicy.of(policy_of(table)) == SortedPolicy.of(policy)


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", "does not begin"),
    "something else": (lambda text: "return os.execute('true')\n", "does not begin"),
    "cut off within a line": (lambda text: text[:-3], "cut off"),
    "cut off after a line": (lambda text: text[: text.index("end\t")], "end is missing"),
    "a line lost": (replaced("exempt\t60699\n", ""), "lines are missing"),
    "two files in one": (lambda text: text + text, "follows its end"),
    "an unknown kind of line": (replaced("exempt", "excused"), "no known kind"),
    "a field too many": (replaced("cluster\tlab", "cluster\tlab\tlab"), "has 2 fields, not 1"),
    "a cluster with a blank": (replaced("cluster\tlab", "cluster\tthe lab"), "wrong field 1"),
    "a number with a point": (replaced("stale\t3600", "stale\t36.5"), "wrong field 1"),
    "a number in hexadecimal": (replaced("stale\t3600", "stale\t0x10"), "wrong field 1"),
    "a word unknown": (replaced("price\trefuse", "price\tmaybe"), "wrong field 1"),
    "a setting missing": (
        lambda text: text.replace("stale\t3600\n", "exempt\t1\n", 1),
        "no line stale",
    ),
    "a setting twice": (replaced("exempt\t60699", "stale\t1"), "is repeated"),
    "a partition that is not there": (replaced("gpu\tgpu\ta100", "gpu\tgpx\ta100"), "no partition"),
    "an account that is not there": (
        replaced("balance\twg_astro", "balance\twg_astra"),
        "no account",
    ),
    "a null character": (replaced("lab", "l\0b"), "wrong field 1"),
    "line ends of elsewhere": (lambda text: text.replace("\n", "\r\n"), "does not begin"),
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_damaged_file_is_refused_with_the_reason(lua: Lua, damage: str) -> None:
    change, reason = DAMAGES[damage]
    policy, error = lua.module("policy_file").parse(change(TEXT))
    assert policy is None
    assert reason in error


def test_changed_byte_never_raises_an_error(lua: Lua) -> None:
    parse = lua.module("policy_file").parse
    for position in range(0, len(TEXT), 3):
        for character in ("\t", "\n", "x", "\0", "9", ""):
            parse(TEXT[:position] + character + TEXT[position + 1 :])


def test_file_is_parsed_again_only_after_a_change(lua: Lua, tmp_path: Path) -> None:
    read, path = lua.module("policy_file").read, tmp_path / "policy"
    path.write_text(TEXT)
    first = read(str(path))
    first.cluster = "read before"
    assert read(str(path), first).cluster == "read before"
    path.write_text(render(msgspec.structs.replace(SITE_POLICY, qos="low")))
    assert read(str(path), first).qos == "low"
    path.write_text(render(msgspec.structs.replace(SITE_POLICY, written=SITE_POLICY.written + 1)))
    assert read(str(path), first).written == SITE_POLICY.written + 1


def test_long_or_missing_file_is_refused(lua: Lua, tmp_path: Path) -> None:
    read, path = lua.module("policy_file").read, tmp_path / "policy"
    assert "cannot open" in read(str(path))[1]
    path.write_text("x" * (POLICY_SIZE_MAX + 1))
    assert "longer than" in read(str(path))[1]
    path.write_text("")
    assert read(str(path))[0] is None
    assert read(str(tmp_path))[0] is None


WRONG: dict[str, SubmissionPolicy] = {
    "cluster": msgspec.structs.replace(SITE_POLICY, cluster="a\tb"),
    "projects.group": msgspec.structs.replace(
        SITE_POLICY, projects=(msgspec.structs.replace(ASTRO, group="wg\nastro"),)
    ),
    "projects.gid": msgspec.structs.replace(
        SITE_POLICY, projects=(ASTRO, msgspec.structs.replace(ASTRO, group="b", account="b"))
    ),
    "projects.wg_astro.account": msgspec.structs.replace(
        SITE_POLICY, projects=(msgspec.structs.replace(ASTRO, account="a,b"),)
    ),
    "short_terms": msgspec.structs.replace(
        SITE_POLICY, short_terms=(msgspec.structs.replace(COURSE, partition="none"),)
    ),
    "short_terms.reservation": msgspec.structs.replace(
        SITE_POLICY, short_terms=(msgspec.structs.replace(COURSE, reservation="a,b"),)
    ),
    "balances": msgspec.structs.replace(SITE_POLICY, balances=(PolicyBalance("nobody", "cpu", 1),)),
    "partitions.cpu": msgspec.structs.replace(
        SITE_POLICY, partitions=(msgspec.structs.replace(CPU, node_cpus=-1),)
    ),
    "partitions.cpu.weights": msgspec.structs.replace(
        SITE_POLICY,
        partitions=(
            msgspec.structs.replace(
                CPU, partition=Partition("cpu", "cpu", {"cpu": Fraction(1, 3**30)})
            ),
        ),
    ),
    "exempt": msgspec.structs.replace(SITE_POLICY, exempt=(7, 7)),
    "partitions": msgspec.structs.replace(SITE_POLICY, partitions=(CPU, CPU)),
}


PRINTABLE = (
    "1 to 255 bytes of printable text without , = or quotes, no blank at its ends,"
    " no + or - at its start"
)
REMEDIES = {
    "cluster": (
        "1 to 255 bytes of printable text without blanks , = / : @ or quotes, no + or - at its"
        " start"
    ),
    "projects.group": PRINTABLE,
    "projects.gid": "list it once",
    "projects.wg_astro.account": PRINTABLE,
    "short_terms": "list both too",
    "short_terms.reservation": PRINTABLE,
    "balances": "list the project too",
    "partitions.cpu": "a whole number from 0 to 1000000000000000",
    "partitions.cpu.weights": "use weights and factors with fewer decimals",
    "exempt": "list it once",
    "partitions": "list it once",
}


@pytest.mark.parametrize("field", sorted(WRONG))
def test_invalid_policy_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        render(WRONG[field])
    assert error.value.field == field
    assert error.value.remedy == REMEDIES[field]


def test_admission_rules_are_those_of_the_plugins() -> None:
    names = frozenset({"cpu", "gpu", "gpu-t4", "long"})
    strict = read_admission_rules(TEXT.encode())
    assert strict.with_candidate("wg_astro", ("cpu",), "gpu-t4") is None
    assert strict.with_candidate("wg_astro", ("cpu",), "gpu") == ("gpu",)
    assert (strict.listed_partitions, strict.one_partition) == (names, True)
    assert tuple(strict.short_terms) == SITE_POLICY.short_terms
    assert strict.with_candidate("wg_chem", ("gpu-t4",), "cpu") is None
    lenient = msgspec.structs.replace(OPEN_POLICY, unlisted=PolicyAction.WARN)
    admitted = read_admission_rules(render(lenient).encode())
    assert (admitted.listed_partitions, admitted.one_partition) == (None, False)
    assert not strict.is_qos_free("wg_astro")  # the site has one QOS for all
    project = msgspec.structs.replace(ASTRO, qos="low")
    lenient = msgspec.structs.replace(
        OPEN_POLICY, qos=None, projects=(project, BIO), short_terms=(), balances=()
    )
    admitted = read_admission_rules(render(lenient).encode())
    assert (admitted.is_qos_free("wg_astro"), admitted.is_qos_free("wg_bio")) == (False, True)
    with pytest.raises(InvalidInput, match="damaged"):
        read_admission_rules(TEXT.replace("wg_bio", "wg_bin").encode())


def test_equal_policies_have_equal_files() -> None:
    assert render(SITE_POLICY) == TEXT
    later = render(msgspec.structs.replace(SITE_POLICY, written=SITE_POLICY.written + 60))
    assert later.splitlines()[1:] == TEXT.splitlines()[1:]
    assert later.splitlines()[0].split("\t")[3] == TEXT.splitlines()[0].split("\t")[3]


def test_heading_has_the_time_and_detects_damage() -> None:
    assert read_header(TEXT.encode()) == PolicyHeader(SITE_POLICY.written, True)
    assert read_header(TEXT.replace("wg_bio", "wg_bin").encode()) == PolicyHeader(
        SITE_POLICY.written, False
    )
    assert read_header(TEXT.rpartition("end\t")[0].encode()) == PolicyHeader(
        SITE_POLICY.written, False
    )
    with pytest.raises(InvalidInput, match="does not begin as a policy file does"):
        read_header(b"\xff\x00")


@pytest.mark.parametrize(("version", "age"), [(6, "older"), (8, "newer")])
def test_file_of_another_version_is_refused_as_older_or_newer(
    lua: Lua, version: int, age: str
) -> None:
    text = TEXT.replace("fairbank-policy\t7", f"fairbank-policy\t{version}")
    message = f"it is of the {age} version {version}; "
    with pytest.raises(InvalidInput, match=message) as refused:
        read_header(text.encode())
    assert str(refused.value.remedy).endswith("then: fairbank slurm sync")
    policy, error = lua.module("policy_file").parse(text)
    assert policy is None
    assert message in error
    assert error.endswith("then: fairbank slurm sync")
