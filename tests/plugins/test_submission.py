"""Both submission plug-ins without Slurm: rules, changes of jobs, and bad or missing policies."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.bank.project import Project
from fairbank.bank.rules.short_term import RequestedPlace, ShortTerm, place_job
from fairbank.cluster.node import Gpus
from fairbank.cluster.partition import Cluster
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import Forbidden, NotFound
from fairbank.core.tres import BillingRule
from fairbank.scheduling.explain.job_changes import gpu_option
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.explain.admission_rules import read_admission_rules
from fairbank.slurm.policy_file import (
    PolicyAction,
    PolicyBalance,
    PolicyProject,
    SubmissionPolicy,
    render,
)
from tests.plugins.interpreter import Lua, Result
from tests.plugins.policies import (
    ASTRO,
    BIO,
    CHEM,
    COURSE,
    CPU,
    GPU,
    GPU_T4,
    LONG,
    OPEN_POLICY,
    SITE_POLICY,
    WRITTEN,
)
from tests.support.gres import MATCH_EXAMPLES

NONE = 4294967294
ALICE, BOB = 60_601, 60_602
SUCCESS = 0
Site = Callable[[SubmissionPolicy], Lua]


@pytest.fixture
def site(lua: Lua, checkout: Path, tmp_path: Path) -> Site:
    """Return a function that installs the plug-ins with a policy that was just written."""

    def built(policy: SubmissionPolicy) -> Lua:
        (tmp_path / "fairbank").mkdir(exist_ok=True)
        for file in (checkout / "plugins").glob("**/*.lua"):
            shutil.copyfile(file, tmp_path / file.relative_to(checkout / "plugins"))
        (tmp_path / "fairbank" / "policy").write_text(render(policy))
        lua.start(tmp_path / "job_submit.lua")
        clock = lua.table(time=lambda: WRITTEN + 60, getenv=lambda name: None)
        lua.replace("os", clock)
        return lua

    return built


def desc(**fields: object) -> dict[str, object]:
    """Return a job description as slurmctld passes it with few options."""
    defaults = {
        "group_id": 60_651,
        "partition": "cpu",
        "time_limit": 10,
        "min_cpus": 1,
        "num_tasks": NONE,
        "min_nodes": NONE,
    }
    return {**defaults, "time_min": NONE, "shared": 65534, "cpus_per_task": 65534, **fields}


def submit(lua: Lua, uid: int = ALICE, **fields: object) -> Result:
    return lua.call("slurm_job_submit", None, uid, job=desc(**fields))


def modify(lua: Lua, record: Mapping[str, object], uid: int = ALICE, **changes: object) -> Result:
    full_record = {
        **desc(),
        "user_id": ALICE,
        "job_id": 7,
        "account": "wg_astro",
        "qos": "normal",
        "time_min": 10,
        **record,
    }
    defaults = dict.fromkeys(
        ("group_id", "time_limit", "time_min", "min_cpus", "min_nodes", "num_tasks"), NONE
    )
    return lua.call(
        "slurm_job_modify",
        lua.table(**full_record),
        None,
        uid,
        job={**defaults, "cpus_per_task": 65534, "shared": 65534, **changes},
    )


def test_missing_fields_are_set(site: Site) -> None:
    result = submit(site(SITE_POLICY))
    assert (result.code, result.user, result.log) == (SUCCESS, [], [])
    assert {
        name: result.job[name] for name in ("account", "qos", "time_min", "min_mem_per_cpu")
    } == {"account": "wg_astro", "qos": "normal", "time_min": 10, "min_mem_per_cpu": 1000}


def test_given_fields_stay(site: Site) -> None:
    result = submit(
        site(SITE_POLICY), time_min=3, min_mem_per_node=512, account="wg_astro", qos="normal"
    )
    assert result.job["time_min"] == 3
    assert "min_mem_per_cpu" not in result.job


def test_root_and_exempt_users_are_not_checked(site: Site) -> None:
    lua = site(SITE_POLICY)
    for uid in (0, 60_699):
        result = submit(lua, uid, partition=None, time_limit=NONE, account="anything")
        assert (result.code, result.user) == (SUCCESS, [])
        assert result.job["time_min"] == NONE
    rules = read_admission_rules(render(SITE_POLICY).encode())
    assert [rules.has_rules_for(uid) for uid in (0, 60_699, ALICE)] == [False, False, True]


def test_all_errors_are_shown_at_once(site: Site) -> None:
    result = submit(site(SITE_POLICY), account="wg_bio", partition="cpu,gpu", time_limit=4294967295)
    assert result.code == 2045
    assert len(result.user) == 3


def test_missing_policy_admits_jobs_and_is_logged_once(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    (tmp_path / "fairbank" / "policy").unlink()
    first, second = submit(lua, account="anything"), submit(lua)
    assert (first.code, first.user) == (second.code, second.user) == (SUCCESS, [])
    assert "fairbank slurm sync" in first.log[0]
    assert second.log == []


def test_site_can_refuse_jobs_without_a_policy(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    plugin = tmp_path / "job_submit.lua"
    plugin.write_text(
        plugin.read_text().replace('WHEN_UNREADABLE = "admit"', 'WHEN_UNREADABLE = "refuse"')
    )
    (tmp_path / "fairbank" / "policy").write_text("nonsense\n")
    lua.start(plugin)
    result = submit(lua)
    assert result.code != SUCCESS
    assert "try again later" in result.user[0]


def test_damaged_policy_keeps_the_last_one_in_force(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    assert submit(lua, account="wg_bio").code == 2045
    path = tmp_path / "fairbank" / "policy"
    text = path.read_text()
    path.write_text(text.replace(str(WRITTEN), str(WRITTEN + 1))[:-10])
    result = submit(lua, account="wg_bio")
    assert result.code == 2045
    assert "stays in force" in result.log[0]
    path.write_text(
        render(
            msgspec.structs.replace(SITE_POLICY, written=WRITTEN + 2, unlisted=PolicyAction.IGNORE)
        )
    )
    assert submit(lua, group_id=1).code == SUCCESS


def test_stale_policy_checks_no_price_and_is_logged(site: Site) -> None:
    lua = site(msgspec.structs.replace(SITE_POLICY, written=WRITTEN - 7200))
    result = submit(lua, min_cpus=64, time_limit=6000)
    assert result.code == SUCCESS
    assert "too old" in result.log[0]
    assert submit(lua, account="wg_bio").code == 2045


def test_omitted_balances_check_no_price(site: Site) -> None:
    assert (
        submit(
            site(msgspec.structs.replace(SITE_POLICY, balances=None)), min_cpus=64, time_limit=6000
        ).code
        == SUCCESS
    )


def test_broken_rules_never_stop_slurmctld(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    (tmp_path / "fairbank" / "rules.lua").write_text("this is no Lua")
    lua.start(tmp_path / "job_submit.lua")
    assert submit(lua).code == SUCCESS
    assert "rules" in submit(lua).log[0]
    result = modify(lua, {}, qos="high")
    assert result.code == SUCCESS


def test_unusual_fields_raise_no_error(site: Site) -> None:
    lua = site(SITE_POLICY)
    for fields in (
        {"group_id": None},
        {"partition": ""},
        {"tres_per_job": ":::,,gpu"},
        {"time_limit": 0},
        {"min_cpus": 1.5},
    ):
        assert submit(lua, **fields).code in (SUCCESS, 2045, 2000, 2072, 2050)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"account": "wg_bio"}, 2045),
        ({"partition": "cpu,gpu"}, 2000),
        ({"partition": "nowhere"}, 2000),
        ({"qos": "high"}, 2066),
        ({"time_limit": 4294967295}, 2051),
        ({"time_limit": 6000, "min_cpus": 64}, 2050),
        ({"min_cpus": 6400}, 2050),
        ({"tres_per_node": "gres:gpu:1"}, 2072),
        ({"account": "wg_astro"}, SUCCESS),
        ({"partition": "long"}, SUCCESS),
        ({"qos": "normal"}, SUCCESS),
        ({"time_limit": 20}, SUCCESS),
        ({"name": "renamed"}, SUCCESS),
    ],
)
def test_changes_are_checked_by_the_same_rules(
    site: Site, change: dict[str, Any], code: int
) -> None:
    assert modify(site(SITE_POLICY), {}, **change).code == code


@pytest.mark.parametrize(
    ("action", "code", "lines"),
    [
        (PolicyAction.REFUSE, 2050, 3),
        (PolicyAction.WARN, SUCCESS, 3),
        (PolicyAction.IGNORE, SUCCESS, 0),
    ],
)
def test_change_beyond_the_credit_is_checked_by_price(
    site: Site, action: PolicyAction, code: int, lines: int
) -> None:
    """Warn the owner of an accepted change too, where the price only warns (the default)."""
    lua = site(msgspec.structs.replace(SITE_POLICY, price=action))
    result = modify(lua, {}, time_limit=6000)
    assert (result.code, len(result.user)) == (code, lines)
    if lines:
        assert (
            result.user[0]
            == "this job may cost 100 SU; wg_astro has 12.50 SU of cpu, short by 87.50 SU"
        )
    assert modify(lua, {}, name="renamed").user == []


def test_job_without_project_can_be_renamed(site: Site) -> None:
    lua = site(SITE_POLICY)
    assert modify(lua, {"group_id": 0}, name="renamed").code == SUCCESS
    assert modify(lua, {"group_id": 0}, account="wg_bio").code == 2045


def test_log_has_one_line_whatever_users_write(site: Site) -> None:
    result = modify(site(SITE_POLICY), {}, partition="cpu,\nerror: all is lost" + "!" * 5000)
    assert result.code == 2000
    assert all("\n" not in line and len(line) < 600 for line in (*result.user, *result.log))


def command(lua: Lua, **options: object) -> Result:
    """Run cli_filter for an sbatch of alice."""
    defaults = {
        "type": "sbatch",
        "uid": str(ALICE),
        "gid": "60651",
        "nodes": "1-0",
        "ntasks": "1",
        "time": "00:10:00",
        "partition": "cpu",
    }
    return lua.call(
        "slurm_cli_pre_submit",
        0,
        job={**defaults, **{name.replace("_", "-"): value for name, value in options.items()}},
    )


def test_commands_apply_the_same_rules(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    lua.run_as(ALICE)
    lua.start(tmp_path / "cli_filter.lua")
    result = command(lua)
    assert (result.code, result.log) == (SUCCESS, [])
    assert (result.job["account"], result.job["qos"]) == ("wg_astro", "normal")
    assert command(lua, account="wg_bio").code != SUCCESS
    assert "12 CPUs" in command(lua, ntasks="32", mem="1G", time="01:00:00").log[2]
    assert (
        "12 CPUs" in command(lua, nodes="2", ntasks_per_node="16", mem="1G", time="01:00:00").log[2]
    )
    assert command(lua, type="srun", jobid="17", account="wg_bio").code == SUCCESS
    assert "--gpus=4" in command(lua, partition="gpu", nodes="2", gres="gres:gpu:2").log[0]
    assert "no time limit" in command(lua, partition="long", time="2982616-04:14:00").log[0]


def test_id_of_nobody_is_replaced_by_own_id(site: Site, tmp_path: Path) -> None:
    """Use the command's own ids where sbatch of 24.11 gives 99; 22.05 gives its own ids."""
    lua = site(SITE_POLICY)
    lua.run_as(ALICE, 60_651)
    lua.start(tmp_path / "cli_filter.lua")
    result = command(lua, uid="99", gid="99")
    assert (result.code, result.job["account"]) == (SUCCESS, "wg_astro")
    lua = site(SITE_POLICY)
    lua.run_as(ALICE, 100)
    lua.start(tmp_path / "cli_filter.lua")
    assert (
        "your current group (number 100) is not a project"
        in command(lua, uid="99", gid="99").log[0]
    )


def test_commands_work_without_a_policy(site: Site, tmp_path: Path) -> None:
    lua = site(SITE_POLICY)
    lua.run_as(ALICE)
    (tmp_path / "fairbank" / "policy").unlink()
    plugin = tmp_path / "cli_filter.lua"
    lua.start(plugin)
    assert command(lua, account="wg_bio").code == SUCCESS
    plugin.write_text(
        plugin.read_text().replace('WHEN_UNREADABLE = "admit"', 'WHEN_UNREADABLE = "refuse"')
    )
    lua.start(plugin)
    assert "try again later" in command(lua).log[-1]


def test_fields_set_by_staff_are_not_checked(site: Site) -> None:
    assert (
        modify(
            site(SITE_POLICY),
            {"qos": "high", "account": "wg_bio", "partition": "elsewhere"},
            name="renamed",
        ).code
        == SUCCESS
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"partition": "cpu"}, 2000),
        ({"reservation": "other"}, 2052),
        ({"name": "renamed"}, SUCCESS),
    ],
)
def test_short_term_allocation_keeps_partition_and_reservation(
    site: Site, change: dict[str, Any], code: int
) -> None:
    record = {
        "group_id": 60_653,
        "account": "wg_chem",
        "partition": "gpu-t4",
        "resv_name": "wg_chem",
    }
    assert modify(site(SITE_POLICY), record, **change).code == code


def test_short_term_allocation_is_hidden_from_others_and_refused_to_them(site: Site) -> None:
    """gpu-t4 and the reservation wg_chem are those of wg_chem; ALICE is a member of wg_astro."""
    lua = site(SITE_POLICY)
    refused = submit(lua, partition="gpu-t4")
    assert refused.code == 2000
    assert refused.user[0] == (
        "there is no partition gpu-t4 to submit to: write --partition=cpu, --partition=gpu or"
        " --partition=long"
    )
    assert "gpu-t4" not in submit(lua, partition="none").user[0].partition("write")[2]
    assert "gpu-t4" not in submit(lua, tres_per_job="gres:gpu:t4:1").user[0]
    refused = submit(lua, reservation="wg_chem")
    assert (refused.code, refused.user[0]) == (
        2052,
        "there is no reservation wg_chem for you: leave out --reservation",
    )
    assert submit(lua, reservation="another").code == SUCCESS
    assert modify(lua, {}, partition="gpu-t4").code == 2000
    assert modify(lua, {"partition": "gpu-t4", "resv_name": "wg_chem"}, name="new").code == SUCCESS
    forced = submit(lua, 60_604, group_id=60_653, partition=None)
    assert (forced.code, forced.job["partition"], forced.job["reservation"]) == (
        SUCCESS, "gpu-t4", "wg_chem",
    )  # fmt: skip


@pytest.mark.parametrize("seconds", [-61, 60], ids=["not begun", "over"])
def test_short_term_allocation_counts_during_its_period_only(site: Site, seconds: int) -> None:
    """It is now WRITTEN + 60."""
    start = WRITTEN + 121 if seconds < 0 else WRITTEN
    period = {"start": start, "end": start + seconds if seconds > 0 else start + 999}
    course = msgspec.structs.replace(COURSE, **period)
    lua = site(msgspec.structs.replace(SITE_POLICY, short_terms=(course,)))
    assert submit(lua, partition="gpu-t4", reservation="wg_chem").code == SUCCESS
    own = submit(lua, 60_604, group_id=60_653, partition="cpu", time_limit=1)
    assert own.job["partition"] == "cpu"
    assert "reservation" not in own.job


PLACES = (None, "cpu", "gpu-t4", "gpu,cpu", "gpu,gpu-t4", "none")
COURSE_OF_BIO = ShortTerm("wg_bio", None, "night", WRITTEN, WRITTEN + 61)


@pytest.mark.parametrize("seconds", [59, 60], ids=["before", "within"])
@pytest.mark.parametrize("reservation", [None, "wg_chem", "night", "another"])
@pytest.mark.parametrize("project", [ASTRO, BIO, CHEM], ids=lambda project: project.account)
def test_quote_sends_a_job_where_the_plugin_does(
    site: Site, project: PolicyProject, reservation: str | None, seconds: int
) -> None:
    """It is now WRITTEN + 60: the short-term allocation of wg_chem begins now or later."""
    start = WRITTEN + 120 - seconds
    terms = (msgspec.structs.replace(COURSE, start=start, end=WRITTEN + 999), COURSE_OF_BIO)
    policy = msgspec.structs.replace(
        OPEN_POLICY, short_terms=terms, price=PolicyAction.IGNORE, qos=None
    )
    partitions = {place.partition.name: place.partition for place in policy.partitions}
    cluster = Cluster("lab", partitions, default_partition=policy.default_partition)
    owner = Project(id=1, gname=project.group, gid=project.gid, account=project.account)
    lua = site(policy)
    for names in PLACES:
        result = submit(
            lua,
            project.members[0],
            group_id=project.gid,
            account=project.account,
            partition=names,
            reservation=reservation,
        )
        try:
            place = place_job(
                terms, owner, cluster, RequestedPlace(names, reservation), WRITTEN + 60
            )
            for name in place.partitions:
                place.cluster.partition(name)
        except Forbidden as error:
            codes = {"partition": 2000, "reservation": 2052}
            assert result.code == codes[str(error.field)]
            if error.field == "partition":
                hidden = "gpu-t4"
                assert hidden not in str(error.remedy)
                assert hidden not in result.user[0].partition("write")[2]
        except NotFound as error:
            assert result.code == 2000
            assert ("gpu-t4" in str(error.remedy)) == ("gpu-t4" in result.user[0])
        else:
            assert (result.code, result.user) == (SUCCESS, list(place.notes))
            assert result.job.get("partition") in (",".join(place.partitions), names)
            assert result.job.get("reservation") == place.reservation


def test_cheaper_change_is_accepted(site: Site) -> None:
    expensive = {"min_cpus": 64, "time_limit": 6000, "time_min": 6000}
    lua = site(SITE_POLICY)
    assert modify(lua, expensive, time_limit=5000).code == SUCCESS
    assert modify(lua, expensive, time_limit=6001).code == 2050


def test_time_min_follows_the_limit(site: Site) -> None:
    lua = site(SITE_POLICY)
    assert modify(lua, {}, time_limit=5).job["time_min"] == 5
    assert modify(lua, {"time_min": 3}, time_limit=5).job["time_min"] == NONE


@pytest.mark.parametrize("uid", [0, 64_030, 60_699], ids=["root", "SlurmUser", "exempt"])
def test_administrators_are_not_checked(site: Site, uid: int) -> None:
    lua = site(SITE_POLICY)
    lua.run_as(64_030)  # slurmctld runs as SlurmUser
    for change in ({"qos": "high"}, {"partition": "cpu,gpu"}, {"time_limit": 4294967295}):
        assert modify(lua, {}, uid=uid, **change).code == SUCCESS


@pytest.mark.parametrize(
    ("change", "code"),
    [({"qos": "high"}, 2066), ({"time_limit": 6000}, 2050), ({"partition": "cpu,gpu"}, 2000)],
)
def test_changes_to_jobs_of_others_are_checked(
    site: Site, change: dict[str, Any], code: int
) -> None:
    """Check coordinators of an account too: Lua cannot distinguish them from operators."""
    result = modify(site(SITE_POLICY), {}, uid=BOB, **change)
    assert result.code == code
    assert (
        result.user[-1]
        == "administrators change it as root, or are listed by uid in `exempt` of slurm.toml"
    )
    assert f"for uid {BOB}" in result.log[0]
    assert not any(
        "exempt" in line for line in modify(site(SITE_POLICY), {}, **change).user
    )  # owners do not see the hint


@pytest.mark.parametrize("partition", ["cpu,gpu", "elsewhere", ""])
def test_unchanged_fields_are_not_checked(site: Site, partition: str) -> None:
    """Accept scontrol hold, release, top, a shorter limit and another partition at any time."""
    lua = site(SITE_POLICY)
    unusual = {
        "partition": partition,
        "qos": "high",
        "account": "wg_bio",
        "time_limit": 6000,
        "time_min": 6000,
    }
    for change in ({"priority": 0}, {"nice": 100}, {"time_limit": 5}, {"comment": "x"}):
        for uid in (ALICE, BOB):
            assert modify(lua, unusual, uid=uid, **change).code == SUCCESS
    assert modify(lua, {}, uid=BOB, partition="long").code == SUCCESS


@pytest.mark.parametrize(
    ("action", "code", "lines"),
    [
        (PolicyAction.REFUSE, 2050, 4),
        (PolicyAction.WARN, SUCCESS, 4),
        (PolicyAction.IGNORE, SUCCESS, 0),
    ],
)
def test_job_beyond_the_credit_is_checked_by_price(
    site: Site, action: PolicyAction, code: int, lines: int
) -> None:
    result = submit(
        site(msgspec.structs.replace(SITE_POLICY, price=action)),
        BOB,
        min_cpus=32,
        min_mem_per_node=1024,
        time_limit=60,
    )
    assert result.code == code
    assert len(result.user) == lines
    if lines:
        assert result.user == [
            "this job may cost 32 SU; wg_astro has 12.50 SU of cpu, short by 19.50 SU",
            "a shorter limit that fits: --time=0:23:00",
            "a smaller job that fits: at most 12 CPUs",
            "more credit: ask for a deposit to wg_astro, or use another project: newgrp wg_bio",
        ]


def test_job_in_an_exclusive_partition_is_judged_by_the_price_of_whole_nodes(site: Site) -> None:
    """A node has 64 CPUs: 11 minutes cost 704 of 750 SU-minutes, 12 minutes 768. A smaller job
    would cost as much.
    """
    place = msgspec.structs.replace(CPU, exclusive=True)
    lua = site(msgspec.structs.replace(SITE_POLICY, partitions=(place,), short_terms=()))
    assert submit(lua, time_limit=11).code == SUCCESS
    refused = submit(lua, time_limit=12)
    assert refused.code != SUCCESS
    assert "a shorter limit that fits: --time=0:11:00" in "\n".join(refused.user)
    assert "smaller job" not in "\n".join(refused.user)


def test_job_is_judged_by_the_credit_of_the_resource_of_its_qos(site: Site) -> None:
    """32 CPUs for an hour cost 32 SU. The group has 12.50 SU of cpu, and 40 SU of debug."""
    job = {"min_cpus": 32, "min_mem_per_node": 1024, "time_limit": 60}
    debug = msgspec.structs.replace(SITE_POLICY, qos_resources={"normal": "debug"})
    result = submit(site(debug), BOB, **job)
    assert result.user[0] == ("project wg_astro has no credit for debug, which QOS normal bills")
    balances = (*(SITE_POLICY.balances or ()), PolicyBalance("wg_astro", "debug", 2400))
    paid = submit(site(msgspec.structs.replace(debug, balances=balances)), BOB, **job)
    assert (paid.code, paid.user) == (SUCCESS, [])


def test_shortfall_is_the_difference_of_shown_amounts(site: Site) -> None:
    result = submit(
        site(
            msgspec.structs.replace(SITE_POLICY, balances=(PolicyBalance("wg_astro", "cpu", 751),))
        ),
        BOB,
        min_cpus=32,
        time_limit=60,
    )
    assert (
        result.user[0] == "this job may cost 32 SU; wg_astro has 12.52 SU of cpu, short by 19.48 SU"
    )


def test_default_partition_is_taken_without_partition_option(site: Site) -> None:
    """Leave the field to slurmctld, and check limit and price in that partition."""
    lua = site(OPEN_POLICY)
    result = submit(lua, partition=None, time_limit=NONE)
    assert (result.code, result.user) == (SUCCESS, [])
    assert (result.job["time_limit"], result.job.get("partition")) == (30, None)
    dear = submit(lua, partition=None, min_cpus=64, time_limit=60)
    assert (dear.code, dear.user[0][:26]) == (2050, "this job may cost 64 SU; w")
    lua = site(msgspec.structs.replace(OPEN_POLICY, default_partition=None))
    assert submit(lua, partition=None).code == 2000


def test_default_partition_that_is_not_listed_is_named(site: Site) -> None:
    result = submit(
        site(msgspec.structs.replace(OPEN_POLICY, default_partition="debug")), partition=None
    )
    assert result.code == 2000
    assert result.user[0].startswith("there is no partition debug to submit to: ")


def test_several_partitions_are_admitted(site: Site) -> None:
    lua = site(OPEN_POLICY)
    result = submit(lua, partition="cpu,gpu", time_limit=10)
    assert (result.code, result.user) == (SUCCESS, [])
    assert (result.job["partition"], result.job.get("min_mem_per_cpu")) == ("cpu,gpu", None)
    unlisted = submit(lua, partition="cpu,elsewhere")
    assert (unlisted.code, unlisted.user[0][:33]) == (2000, "there is no partition elsewhere t")


def test_several_partitions_are_priced_where_most_credit_is_missing(site: Site) -> None:
    """64 CPUs for an hour: 64 SU of cpu, of which 12.50 are there, and 4 SU of gpu of 100."""
    for partition in ("cpu,gpu-t4", "gpu-t4,cpu"):
        result = submit(
            site(OPEN_POLICY), partition=partition, min_cpus=64, time_limit=60, min_mem_per_node=1
        )
        assert result.code == 2050
        assert result.user[0].startswith("this job may cost 64 SU; wg_astro has 12.50 SU of cpu")
    assert submit(site(OPEN_POLICY), partition="gpu-t4", min_cpus=64, time_limit=60).code == SUCCESS


def test_several_partitions_without_limit_leave_it_to_slurm(site: Site) -> None:
    lua = site(OPEN_POLICY)
    result = submit(lua, partition="cpu,gpu", time_limit=NONE)
    assert (result.code, result.job["time_limit"], result.job["time_min"]) == (SUCCESS, NONE, NONE)
    assert submit(lua, partition="cpu,long", time_limit=NONE).code == 2051


def test_gpus_must_be_in_one_of_several_partitions(site: Site) -> None:
    lua = site(OPEN_POLICY)
    assert submit(lua, partition="cpu,gpu", tres_per_job="gres:gpu:a100:1").code == SUCCESS
    assert submit(lua, partition="cpu,gpu", tres_per_job="gres:gpu:t4:1").code == 2072


def test_gpu_type_is_compared_with_its_case_as_slurm_does(site: Site) -> None:
    for of_node, requested, fits in MATCH_EXAMPLES:
        place = msgspec.structs.replace(GPU, gpus={of_node: 4})
        lua = site(msgspec.structs.replace(OPEN_POLICY, partitions=(CPU, place)))
        result = submit(lua, partition="gpu", tres_per_job=f"gres:gpu:{requested}:1")
        assert result.code == (SUCCESS if fits else 2072), (of_node, requested)


def test_gpus_of_a_partition_with_unknown_nodes_are_not_refused(site: Site) -> None:
    """Slurm names no node of partition long: only Slurm knows its GPUs."""
    lua = site(OPEN_POLICY)
    for gpus in ("gres:gpu:1080ti:2", "gres:gpu:1"):
        assert submit(lua, partition="long", tres_per_node=gpus).code == SUCCESS
        assert submit(lua, partition="cpu", tres_per_node=gpus).code == 2072


@pytest.mark.parametrize(
    ("uid", "fields", "account"),
    [
        (BOB, {"account": "wg_bio"}, "wg_bio"),
        (BOB, {"account": "wg_bio", "group_id": 100}, "wg_bio"),
        (BOB, {"default_account": "wg_bio"}, "wg_bio"),
        (BOB, {"default_account": "wg_bio", "account": "wg_astro"}, "wg_astro"),
        (BOB, {"default_account": "wg_chem"}, "wg_astro"),  # no project of his: the group's
        (ALICE, {"group_id": 100}, "wg_astro"),  # her only project
        (60_690, {}, "wg_astro"),  # not in the bank yet, but in the Unix group
    ],
)
def test_account_is_a_choice_among_own_projects(
    site: Site, uid: int, fields: dict[str, object], account: str
) -> None:
    result = submit(site(OPEN_POLICY), uid, **fields)
    assert (result.code, result.user, result.job["account"]) == (SUCCESS, [], account)


@pytest.mark.parametrize(
    ("uid", "fields", "message"),
    [
        (
            ALICE,
            {"account": "wg_bio"},
            "you are not a member of project wg_bio: write --account=wg_astro",
        ),
        (
            BOB,
            {"account": "nobody"},
            "account nobody is not a project: write --account=wg_astro or --account=wg_bio",
        ),
        (
            BOB,
            {"group_id": 100},
            "no account is named: write --account=wg_astro or --account=wg_bio",
        ),
        (
            60_690,
            {"group_id": 100},
            "you are a member of no project: ask your project's PI or coordinator to add you",
        ),
    ],
)
def test_account_of_no_own_project_is_refused_with_the_choice(
    site: Site, uid: int, fields: dict[str, object], message: str
) -> None:
    result = submit(site(OPEN_POLICY), uid, **fields)
    assert (result.code, result.user) == (2045, [message])


def test_account_of_a_job_can_become_another_own_project(site: Site) -> None:
    lua = site(OPEN_POLICY)
    bobs = {"user_id": BOB}
    assert modify(lua, bobs, uid=BOB, account="wg_bio").code == SUCCESS
    assert modify(lua, {}, account="wg_bio").code == 2045
    assert modify(lua, {}, partition="cpu,gpu").code == SUCCESS


def test_price_names_other_projects_as_the_policy_lets_users_choose(site: Site) -> None:
    fields = {"min_cpus": 32, "min_mem_per_node": 1024, "time_limit": 60}
    for policy, choice in ((OPEN_POLICY, "--account=wg_bio"), (SITE_POLICY, "newgrp wg_bio")):
        assert submit(site(policy), BOB, **fields).user[-1].endswith(f"another project: {choice}")


def test_commands_leave_the_default_account_to_slurmctld(site: Site, tmp_path: Path) -> None:
    """Only slurmctld knows the default account, which matters with several projects."""
    lua = site(OPEN_POLICY)
    lua.run_as(BOB)
    lua.start(tmp_path / "cli_filter.lua")
    result = command(lua, uid=str(BOB), account=None)
    assert (result.code, result.log, result.job.get("account")) == (SUCCESS, [], None)
    assert command(lua, uid=str(BOB), account="wg_bio", partition="cpu,long").code == SUCCESS
    assert command(lua, uid=str(BOB), account="wg_chem").code != SUCCESS
    assert command(lua, account=None, partition=None).job["account"] == "wg_astro"


ADMISSION = {
    "strict": SITE_POLICY,
    "open": OPEN_POLICY,
    "any QOS": msgspec.structs.replace(OPEN_POLICY, qos=None),
    "QOS of the project": msgspec.structs.replace(
        OPEN_POLICY,
        qos=None,
        projects=(msgspec.structs.replace(ASTRO, qos="normal"),),
        balances=None,
    ),
    "partition of the project": msgspec.structs.replace(
        OPEN_POLICY,
        qos=None,
        short_terms=(ShortTerm("wg_astro", "cpu", None, WRITTEN, WRITTEN + 999),),
        balances=None,
    ),
    "unlisted partitions": msgspec.structs.replace(OPEN_POLICY, unlisted=PolicyAction.WARN),
}


@pytest.mark.parametrize("name", ADMISSION)
def test_change_that_is_advised_is_submitted_as_it_is(site: Site, name: str) -> None:
    """`fairbank why` reads the policy with `AdmissionRules`; the plug-in decides."""
    policy = ADMISSION[name]
    lua, rules = site(policy), read_admission_rules(render(policy).encode())
    job: dict[str, Any] = {"account": "wg_astro", "qos": "normal"}
    for partition in ("gpu", "gpu-t4", "long", "elsewhere"):
        chosen = rules.with_candidate("wg_astro", ("cpu",), partition)
        wanted = ",".join(chosen or ("cpu", partition))
        result = submit(lua, **job, partition=wanted)
        is_kept = result.code == SUCCESS and result.job.get("partition", wanted) == wanted
        assert is_kept or chosen is None, (partition, result.user)
        assert chosen is not None or not is_kept, partition
    result = submit(lua, **{**job, "qos": "low"})
    assert (result.code, result.job["qos"] == "low") == (SUCCESS, rules.is_qos_free("wg_astro"))


def test_gpus_are_advised_in_a_form_that_the_policy_accepts(site: Site) -> None:
    lua = site(msgspec.structs.replace(SITE_POLICY, gres=PolicyAction.REFUSE))
    for wanted in (Gpus("a100", 1), Gpus("", 1)):
        option, _, value = gpu_option([wanted]).partition("=")
        assert option == "--gpus-per-node"
        gpus = f"gres:gpu:{value}"  # as sbatch writes it
        by_node = lua.table(SLURM_GPUS_PER_NODE=gpus)
        result = submit(lua, partition="gpu", tres_per_node=gpus, script="x", environment=by_node)
        assert (result.code, result.user) == (SUCCESS, [])


@pytest.mark.parametrize(
    ("partition", "qos", "cpus", "minutes"),
    [
        ("cpu", "normal", 1, 750),
        ("cpu", "normal", 1, 751),
        ("cpu", "high", 1, 500),
        ("cpu", "high", 1, 501),
        ("cpu", "low", 3, 750),
        ("cpu", "low", 3, 751),
        ("gpu", "normal", 8, 750),
        ("gpu", "normal", 8, 751),
        ("gpu-t4", "normal", 1, 100),
        ("cpu,gpu", "normal", 1, 751),
        ("elsewhere", "normal", 64, 9_000),
        ("cpu", "normal", 1, None),
        ("cpu", "normal", 200, None),
        ("long", "normal", 1, None),
        ("cpu,long", "normal", 1, None),
    ],
)
def test_price_is_judged_as_the_plugin_judges_it(
    site: Site, partition: str, qos: str, cpus: int, minutes: int | None
) -> None:
    policy = msgspec.structs.replace(OPEN_POLICY, qos=None, unlisted=PolicyAction.IGNORE)
    lua, rules = site(policy), read_admission_rules(render(policy).encode())
    options: dict[str, Any] = {
        "partition": partition,
        "qos": qos,
        "min_cpus": cpus,
        "time_limit": NONE if minutes is None else minutes,
    }
    result = submit(lua, account="wg_astro", min_mem_per_node=1, **options)
    job = PendingJob(
        number=1,
        account="wg_astro",
        qos=qos,
        partitions=tuple(partition.split(",")),
        limit=None if minutes is None else minutes * 60,
        tres={"cpu": cpus, "mem": 1, "node": 1},
    )
    assert rules.is_price_admitted(job, WRITTEN + 60) == (result.code == SUCCESS), result.user
    stale = WRITTEN + policy.stale_seconds + 1
    has_limit = minutes is not None or "long" not in partition
    assert rules.is_price_admitted(job, stale) == has_limit
    warned = msgspec.structs.replace(policy, price=PolicyAction.WARN)
    assert read_admission_rules(render(warned).encode()).is_price_admitted(job, WRITTEN)


@pytest.mark.parametrize(
    ("partition", "options", "wanted", "minutes"),
    [
        ("cpu", {"min_mem_per_node": 1}, {"memory_per_node": 1}, 11),
        ("cpu", {"min_mem_per_cpu": 4096}, {"memory_per_cpu": 4096}, 5),
        ("gpu", {"min_mem_per_node": 1}, {"memory_per_node": 1}, 62),
        ("long", {"min_mem_per_node": 1}, {"memory_per_node": 1}, 750),
        ("gpu-t4", {"min_mem_per_node": 1}, {"memory_per_node": 1}, 96_000),
        ("gpu-t4", {"min_mem_per_node": 1, "shared": 0}, {"exclusive": True}, 1_500),
        ("long", {"min_mem_per_node": 1, "shared": 0}, {"exclusive": True}, 750),
    ],
)
def test_whole_nodes_are_priced_as_the_plugin_prices_them(
    site: Site, partition: str, options: dict[str, Any], wanted: dict[str, Any], minutes: int
) -> None:
    """The longest limit of a job of one CPU that the credit pays for."""
    summed = msgspec.structs.replace(GPU.partition, billing_rule=BillingRule.SUM)
    places = (
        msgspec.structs.replace(CPU, exclusive=True),
        msgspec.structs.replace(GPU, partition=summed, exclusive=True),
        GPU_T4,
        msgspec.structs.replace(LONG, exclusive=True),  # the size of its nodes is unknown
    )
    policy = msgspec.structs.replace(OPEN_POLICY, partitions=places)
    lua, rules = site(policy), read_admission_rules(render(policy).encode())
    for limit in (minutes, minutes + 1):
        result = submit(lua, account="wg_astro", partition=partition, time_limit=limit, **options)
        job = PendingJob(
            number=1,
            account="wg_astro",
            partitions=(partition,),
            limit=limit * 60,
            wanted=ResourceRequest(**wanted),
            tres={"cpu": 1, "mem": wanted.get("memory_per_cpu", 1), "node": 1},
        )
        assert (result.code == SUCCESS) == (limit == minutes), result.user
        assert rules.is_price_admitted(job, WRITTEN + 60) == (limit == minutes)
