"""`fairbank slurm sync` with a running bank and recorded Slurm output."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.cli.framework.exit_codes import WRONG_USAGE
from fairbank.core.time import DAY
from tests.slurm.commands.site import MY_UID, CommandSite

pytestmark = pytest.mark.slow


def write_rules(site: CommandSite, text: str = "") -> Path:
    path = site.bank.folder / "slurm.toml"
    path.write_text(
        f'policy = "{site.bank.folder}/policy"\npublic_policy = "{site.bank.folder}/public"\n{text}'
    )
    return path


def test_policy_file_is_written_from_the_bank(site: CommandSite) -> None:
    rules = write_rules(site, 'price = "refuse"\nexempt = [7]\n[projects.bio]\nqos = "low"\n')
    short_term = {"partition": "gpu-t4", "reservation": "course", "comment": "spring school"}
    start, end = site.now - DAY, site.now + DAY
    site.client.post(
        "/alloc",
        {"account": "bio", "resource": "gpu", "category": "research", "start": start, "end": end}
        | short_term,
    )
    site.slurm.set_output("scontrol-show-reservation", "No reservations in the system\n")
    planned = site.run("slurm", "sync", "--site", str(rules), "--dry-run", code=0)
    assert "would write" in planned.out
    missing = " ".join(planned.err.split())
    assert "! Slurm has no reservation course, to which an allocation of bio sends jobs" in missing
    site.slurm.set_output("scontrol-show-reservation", "ReservationName=course Licenses=abaqus:5\n")
    policy, public = site.bank.folder / "policy", site.bank.folder / "public"
    assert not policy.exists()
    written = site.run("slurm", "sync", "--site", str(rules), code=0)
    assert written.out == (
        f"written: {policy}, 2 projects of cluster lab\nwritten: {public}, 2 projects of cluster"
        " lab\n"
    )
    assert "reservation" not in written.err
    lines = policy.read_text().splitlines()
    assert {
        "cluster\tlab",
        "price\trefuse",
        "exempt\t7",
        "gpu\tgpu\ta100\t4",
        "gpu\tgpu-t4\tt4\t4",
        "balances\tincluded",
    } <= set(lines)
    assert f"project\tchem\t50001\tchem\t\t {MY_UID} " in lines
    assert "project\tbio\t50002\tbio\tlow\t " in lines
    assert f"short\tbio\tgpu-t4\tcourse\t{start}\t{end}" in lines
    assert "balance\tchem\tcpu\t600" in lines
    assert "balances\tomitted" in public.read_text()
    assert "balance\tchem" not in public.read_text()
    assert policy.stat().st_mode & 0o777 == 0o644


def test_policy_file_keeps_mode_and_survives_bad_output(site: CommandSite) -> None:
    rules, policy = write_rules(site), site.bank.folder / "policy"
    site.output("slurm", "sync", "--site", str(rules))
    policy.chmod(0o640)
    site.output("slurm", "sync", "--site", str(rules))
    assert policy.stat().st_mode & 0o777 == 0o640
    before = policy.read_text()
    site.slurm.set_output("scontrol-show-node", "NodeName=c01 RealMemory=1 Partitions=cpu\n")
    result = site.run("slurm", "sync", "--site", str(rules), code=2)
    assert "scontrol show node, line 1, CPUTot: is not there" in " ".join(result.err.split())
    assert policy.read_text() == before
    assert [path.name for path in site.bank.folder.glob(".policy*")] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prise = 1", "there is no setting prise"),
        ("price = 'never'", 'price is "never", not an accepted value'),
        ("[projects.nobody]\nqos = 'x'", "no project has the account 'nobody'"),
        ("a = [", "is not TOML"),
    ],
)
def test_invalid_site_rules_are_reported(site: CommandSite, text: str, message: str) -> None:
    result = site.run("slurm", "sync", "--site", str(write_rules(site, text)), code=2)
    assert message.lower() in " ".join(result.err.split()).lower()


@pytest.mark.parametrize("word", ["--fence", "--remove", "--no-policy"])
def test_account_options_need_accounts(site: CommandSite, word: str) -> None:
    result = site.run("slurm", "sync", word, code=WRONG_USAGE)
    assert f"field: {word}" in result.err
    assert "--accounts" in result.err
    assert not [line for line in site.slurm.command_lines if line.startswith("sacctmgr")]


def test_accounts_and_limits_follow_the_projects(site: CommandSite) -> None:
    site.output("project", "create", "lab7", "--gid", "50007", "--parent", "chem")
    planned = site.output(
        "slurm", "sync", "--no-policy", "--accounts", "--fence", "--dry-run"
    ).splitlines()
    assert [line.partition("   #")[0] for line in planned] == [
        "sacctmgr -i add account lab7 cluster=lab description=lab7 organization=lab7 parent=chem",
        "sacctmgr -i modify account where name=chem cluster=lab set GrpTRESMins=billing=640",
        "sacctmgr -i modify account where name=bio cluster=lab set GrpTRESMins=billing=0",
        "sacctmgr -i modify account where name=lab7 cluster=lab set GrpTRESMins=billing=0",
    ]
    assert not [line for line in site.slurm.command_lines if "--immediate" in line]
    assert site.output("slurm", "sync", "--no-policy", "--accounts", "--fence").endswith(
        "made: 4 changes\n"
    )
    assert [line for line in site.slurm.command_lines if "--immediate" in line] == [
        f"sacctmgr --immediate {line.removeprefix('sacctmgr -i ').partition('   #')[0]}"
        for line in planned
    ]


def test_no_limit_is_set_with_unreadable_sshare(site: CommandSite) -> None:
    site.slurm.set_output("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||lots|\n")
    result = site.run("slurm", "sync", "--no-policy", "--accounts", "--fence", code=2)
    assert "sshare, line 3, RawUsage" in " ".join(result.err.split())
    assert not [line for line in site.slurm.command_lines if "--immediate" in line]
