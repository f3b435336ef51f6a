"""Both plug-ins, without a Slurm: what they do when there is no policy, an old one, or something quite unforeseen; changes of jobs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.slurm.policy_file import PolicyAction, PolicyBalance, SubmissionPolicy, render
from tests.plugins.interpreter import Lua, Said
from tests.plugins.policies import CENTRE, WRITTEN

NONE = 4294967294
ALICE, BOB = 60_601, 60_602
SUCCESS = 0
Site = Callable[[SubmissionPolicy], Lua]


@pytest.fixture
def site(lua: Lua, checkout: Path, tmp_path: Path) -> Site:
    """A centre's folder with the plug-ins and this policy, written a moment ago."""

    def built(policy: SubmissionPolicy) -> Lua:
        shutil.copytree(
            checkout / "plugins", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.c")
        )
        (tmp_path / "fairbank" / "policy").write_text(render(policy))
        lua.start(tmp_path / "job_submit.lua")
        now = lua.table(time=lambda: WRITTEN + 60, getenv=lambda name: None)
        lua.set("os", now)
        return lua

    return built


def desc(**given: object) -> dict[str, object]:
    """A job as slurmctld hands it over when hardly anything is said."""
    bare = {
        "group_id": 60_651,
        "partition": "cpu",
        "time_limit": 10,
        "min_cpus": 1,
        "num_tasks": NONE,
        "min_nodes": NONE,
    }
    return {**bare, "time_min": NONE, "shared": 65534, "cpus_per_task": 65534, **given}


def submit(lua: Lua, uid: int = ALICE, **given: object) -> Said:
    return lua.call("slurm_job_submit", None, uid, job=desc(**given))


def modify(lua: Lua, record: Mapping[str, object], uid: int = ALICE, **given: object) -> Said:
    owned = {
        **desc(),
        "user_id": ALICE,
        "job_id": 7,
        "account": "wg_astro",
        "qos": "normal",
        "time_min": 10,
        **record,
    }
    bare = dict.fromkeys(
        ("group_id", "time_limit", "time_min", "min_cpus", "min_nodes", "num_tasks"), NONE
    )
    return lua.call(
        "slurm_job_modify",
        lua.table(**owned),
        None,
        uid,
        job={**bare, "cpus_per_task": 65534, "shared": 65534, **given},
    )


def test_a_plain_job_is_made_complete(site: Site) -> None:
    said = submit(site(CENTRE))
    assert (said.code, said.user, said.log) == (SUCCESS, [], [])
    assert {name: said.job[name] for name in ("account", "qos", "time_min", "min_mem_per_cpu")} == {
        "account": "wg_astro",
        "qos": "normal",
        "time_min": 10,
        "min_mem_per_cpu": 1000,
    }


def test_what_was_given_stays(site: Site) -> None:
    said = submit(site(CENTRE), time_min=3, min_mem_per_node=512, account="wg_astro", qos="normal")
    assert said.job["time_min"] == 3
    assert "min_mem_per_cpu" not in said.job


def test_root_and_the_exempt_pass_untouched(site: Site) -> None:
    lua = site(CENTRE)
    for uid in (0, 60_699):
        said = submit(lua, uid, partition=None, time_limit=NONE, account="anything")
        assert (said.code, said.user) == (SUCCESS, [])
        assert said.job["time_min"] == NONE


def test_all_mistakes_are_told_at_once(site: Site) -> None:
    said = submit(site(CENTRE), account="wg_bio", partition="cpu,gpu", time_limit=4294967295)
    assert said.code == 2045
    assert len(said.user) == 3


def test_without_a_policy_jobs_are_admitted_and_the_log_says_so_once(
    site: Site, tmp_path: Path
) -> None:
    lua = site(CENTRE)
    (tmp_path / "fairbank" / "policy").unlink()
    first, second = submit(lua, account="anything"), submit(lua)
    assert (first.code, first.user) == (second.code, second.user) == (SUCCESS, [])
    assert "fairbank slurm sync" in first.log[0]
    assert second.log == []


def test_a_site_may_refuse_while_there_is_no_policy(site: Site, tmp_path: Path) -> None:
    lua = site(CENTRE)
    plugin = tmp_path / "job_submit.lua"
    plugin.write_text(
        plugin.read_text().replace('WHEN_UNREADABLE = "admit"', 'WHEN_UNREADABLE = "refuse"')
    )
    (tmp_path / "fairbank" / "policy").write_text("nonsense\n")
    lua.start(plugin)
    said = submit(lua)
    assert said.code != SUCCESS
    assert "try again later" in said.user[0]


def test_a_damaged_policy_leaves_the_one_before_in_force(site: Site, tmp_path: Path) -> None:
    lua = site(CENTRE)
    assert submit(lua, account="wg_bio").code == 2045
    path = tmp_path / "fairbank" / "policy"
    whole = path.read_text()
    path.write_text(whole.replace(str(WRITTEN), str(WRITTEN + 1))[:-10])
    said = submit(lua, account="wg_bio")
    assert said.code == 2045
    assert "stays in force" in said.log[0]
    path.write_text(
        render(msgspec.structs.replace(CENTRE, written=WRITTEN + 2, unlisted=PolicyAction.IGNORE))
    )
    assert submit(lua, group_id=1).code == SUCCESS


def test_an_old_policy_checks_no_price_and_says_so(site: Site) -> None:
    lua = site(msgspec.structs.replace(CENTRE, written=WRITTEN - 7200))
    said = submit(lua, min_cpus=64, time_limit=6000)
    assert said.code == SUCCESS
    assert "too old" in said.log[0]
    assert submit(lua, account="wg_bio").code == 2045


def test_balances_that_are_not_told_check_no_price(site: Site) -> None:
    assert (
        submit(
            site(msgspec.structs.replace(CENTRE, balances=None)), min_cpus=64, time_limit=6000
        ).code
        == SUCCESS
    )


def test_rules_that_are_missing_or_broken_never_stop_the_controller(
    site: Site, tmp_path: Path
) -> None:
    lua = site(CENTRE)
    (tmp_path / "fairbank" / "rules.lua").write_text("this is no Lua")
    lua.start(tmp_path / "job_submit.lua")
    assert submit(lua).code == SUCCESS
    assert "rules" in submit(lua).log[0]
    said = modify(lua, {}, qos="high")
    assert said.code == SUCCESS


def test_a_job_of_unforeseen_kind_is_no_error_of_lua(site: Site) -> None:
    lua = site(CENTRE)
    for strange in (
        {"group_id": None},
        {"partition": ""},
        {"tres_per_job": ":::,,gpu"},
        {"time_limit": 0},
        {"min_cpus": 1.5},
    ):
        assert submit(lua, **strange).code in (SUCCESS, 2045, 2000, 2072, 2050)


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
def test_changes_obey_the_same_rules(site: Site, change: dict[str, Any], code: int) -> None:
    assert modify(site(CENTRE), {}, **change).code == code


@pytest.mark.parametrize(
    ("how", "code", "lines"),
    [
        (PolicyAction.REFUSE, 2050, 3),
        (PolicyAction.WARN, SUCCESS, 3),
        (PolicyAction.IGNORE, SUCCESS, 0),
    ],
)
def test_a_change_that_makes_a_job_too_dear(
    site: Site, how: PolicyAction, code: int, lines: int
) -> None:
    """Owners are warned of a change that is taken, too, where the price only warns, as it usually does."""
    lua = site(msgspec.structs.replace(CENTRE, price=how))
    said = modify(lua, {}, time_limit=6000)
    assert (said.code, len(said.user)) == (code, lines)
    if lines:
        assert (
            said.user[0]
            == "this job may cost 100 SU; wg_astro has 12.50 SU of cpu, short by 87.50 SU"
        )
    assert modify(lua, {}, name="renamed").user == []


def test_a_job_of_no_project_may_still_be_renamed(site: Site) -> None:
    lua = site(CENTRE)
    assert modify(lua, {"group_id": 0}, name="renamed").code == SUCCESS
    assert modify(lua, {"group_id": 0}, account="wg_bio").code == 2045


def test_nobody_writes_lines_into_the_log(site: Site) -> None:
    said = modify(site(CENTRE), {}, partition="cpu,\nerror: all is lost" + "!" * 5000)
    assert said.code == 2000
    assert all("\n" not in each and len(each) < 600 for each in (*said.user, *said.log))


def command(lua: Lua, **options: object) -> Said:
    """sbatch of alice, as cli_filter sees it."""
    bare = {
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
        job={**bare, **{name.replace("_", "-"): value for name, value in options.items()}},
    )


def test_the_commands_say_the_same(site: Site, tmp_path: Path) -> None:
    lua = site(CENTRE)
    lua.run_as(ALICE)
    lua.start(tmp_path / "cli_filter.lua")
    plain = command(lua)
    assert (plain.code, plain.log) == (SUCCESS, [])
    assert (plain.job["account"], plain.job["qos"]) == ("wg_astro", "normal")
    assert command(lua, account="wg_bio").code != SUCCESS
    assert "12 CPUs" in command(lua, ntasks="32", mem="1G", time="01:00:00").log[2]
    assert (
        "12 CPUs" in command(lua, nodes="2", ntasks_per_node="16", mem="1G", time="01:00:00").log[2]
    )
    assert command(lua, type="srun", jobid="17", account="wg_bio").code == SUCCESS
    assert "--gpus=4" in command(lua, partition="gpu", nodes="2", gres="gres:gpu:2").log[0]
    assert "no time limit" in command(lua, partition="long", time="2982616-04:14:00").log[0]


def test_an_option_that_newer_commands_tell_as_nobodys_was_not_given(
    site: Site, tmp_path: Path
) -> None:
    """sbatch of 24.11 tells uid and gid 99 then; those of the command itself count, as 22.05 tells them."""
    lua = site(CENTRE)
    lua.run_as(ALICE, 60_651)
    lua.start(tmp_path / "cli_filter.lua")
    plain = command(lua, uid="99", gid="99")
    assert (plain.code, plain.job["account"]) == (SUCCESS, "wg_astro")
    lua = site(CENTRE)
    lua.run_as(ALICE, 100)
    lua.start(tmp_path / "cli_filter.lua")
    assert (
        "your current group (number 100) is no project" in command(lua, uid="99", gid="99").log[0]
    )


def test_the_commands_do_without_a_policy(site: Site, tmp_path: Path) -> None:
    lua = site(CENTRE)
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


def test_what_staff_changed_does_not_bind_the_owner(site: Site) -> None:
    assert (
        modify(
            site(CENTRE),
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
def test_jobs_of_a_short_term_allocation_stay_where_they_are(
    site: Site, change: dict[str, Any], code: int
) -> None:
    record = {
        "group_id": 60_653,
        "account": "wg_chem",
        "partition": "gpu-t4",
        "resv_name": "wg_chem",
    }
    assert modify(site(CENTRE), record, **change).code == code


def test_a_job_may_always_become_cheaper(site: Site) -> None:
    dear = {"min_cpus": 64, "time_limit": 6000, "time_min": 6000}
    lua = site(CENTRE)
    assert modify(lua, dear, time_limit=5000).code == SUCCESS
    assert modify(lua, dear, time_limit=6001).code == 2050


def test_the_least_time_follows_the_limit_that_it_was(site: Site) -> None:
    lua = site(CENTRE)
    assert modify(lua, {}, time_limit=5).job["time_min"] == 5
    assert modify(lua, {"time_min": 3}, time_limit=5).job["time_min"] == NONE


@pytest.mark.parametrize("uid", [0, 64_030, 60_699], ids=["root", "SlurmUser", "exempt"])
def test_who_looks_after_the_cluster_changes_what_they_like(site: Site, uid: int) -> None:
    lua = site(CENTRE)
    lua.run_as(64_030)  # slurmctld runs as SlurmUser
    for change in ({"qos": "high"}, {"partition": "cpu,gpu"}, {"time_limit": 4294967295}):
        assert modify(lua, {}, uid=uid, **change).code == SUCCESS


@pytest.mark.parametrize(
    ("change", "code"),
    [({"qos": "high"}, 2066), ({"time_limit": 6000}, 2050), ({"partition": "cpu,gpu"}, 2000)],
)
def test_who_changes_anothers_job_goes_round_no_rule(
    site: Site, change: dict[str, Any], code: int
) -> None:
    """A coordinator of the account may, by Slurm; Lua cannot tell one from an operator."""
    said = modify(site(CENTRE), {}, uid=BOB, **change)
    assert said.code == code
    assert (
        said.user[-1]
        == "who looks after the cluster changes it as root, or is named by uid among `exempt` in slurm.toml"
    )
    assert f"for uid {BOB}" in said.log[0]
    assert not any(
        "exempt" in line for line in modify(site(CENTRE), {}, **change).user
    )  # no word of it to owners


@pytest.mark.parametrize("partition", ["cpu,gpu", "elsewhere", ""])
def test_an_emergency_waits_for_no_rule(site: Site, partition: str) -> None:
    """What is not changed is not judged, whoever asks: scontrol hold, release, top, a shorter limit, another of the partitions."""
    lua = site(CENTRE)
    odd = {
        "partition": partition,
        "qos": "high",
        "account": "wg_bio",
        "time_limit": 6000,
        "time_min": 6000,
    }
    for change in ({"priority": 0}, {"nice": 100}, {"time_limit": 5}, {"comment": "x"}):
        for uid in (ALICE, BOB):
            assert modify(lua, odd, uid=uid, **change).code == SUCCESS
    assert modify(lua, {}, uid=BOB, partition="long").code == SUCCESS


@pytest.mark.parametrize(
    ("how", "code", "lines"),
    [
        (PolicyAction.REFUSE, 2050, 4),
        (PolicyAction.WARN, SUCCESS, 4),
        (PolicyAction.IGNORE, SUCCESS, 0),
    ],
)
def test_a_job_that_is_too_dear(site: Site, how: PolicyAction, code: int, lines: int) -> None:
    said = submit(
        site(msgspec.structs.replace(CENTRE, price=how)),
        BOB,
        min_cpus=32,
        min_mem_per_node=1024,
        time_limit=60,
    )
    assert said.code == code
    assert len(said.user) == lines
    if lines:
        assert said.user == [
            "this job may cost 32 SU; wg_astro has 12.50 SU of cpu, short by 19.50 SU",
            "a shorter limit that fits: --time=0:23:00",
            "a smaller job that fits: at most 12 CPUs",
            "more credit: ask for a deposit to wg_astro, or use another project: newgrp wg_bio",
        ]


def test_what_is_short_is_what_the_shown_figures_differ_by(site: Site) -> None:
    said = submit(
        site(msgspec.structs.replace(CENTRE, balances=(PolicyBalance("wg_astro", "cpu", 751),))),
        BOB,
        min_cpus=32,
        time_limit=60,
    )
    assert (
        said.user[0] == "this job may cost 32 SU; wg_astro has 12.51 SU of cpu, short by 19.49 SU"
    )
