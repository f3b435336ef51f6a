"""sacctmgr show, and the commands that its other verbs name."""

from __future__ import annotations

import pytest

from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine, UserLine
from fairbank.slurm.output import show_command
from fairbank.slurm.parsers import sacctmgr as parser
from fairbank.slurm.parsers.limits import QOS_LIMITS
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import Run, answer_with, run

__all__ = ["run"]
ASSOCIATIONS = [
    AssociationLine("root", cluster="lab"),
    AssociationLine("wg_astro", cluster="lab", parent="root", depth=1, shares=50, qos="high,low"),
    AssociationLine("wg_astro", "alice", cluster="lab", depth=1, shares="parent", max_jobs=5),
]
QOS = [QosLine("normal"), QosLine("high", priority=100, max_wall=3600)]


@pytest.fixture(autouse=True)
def accounts(controller: RecordingController) -> None:
    answer_with(
        controller, associations=ASSOCIATIONS, qos=QOS, users=[UserLine("alice", "wg_astro")]
    )


def test_associations_are_printed_as_a_tree(run: Run) -> None:
    form = "format=cluster,account,user,share,grptresmins,maxjobs,qos,defaultqos"
    assert run("sacctmgr", "-P", "show", "assoc", "tree", form) == (
        "Cluster|Account|User|Share|GrpTRESMins|MaxJobs|QOS|Def QOS\n"
        "lab|root||1||||\n"
        "lab| wg_astro||50|||high,low|\n"
        "lab|  wg_astro|alice|parent||5||\n"
    )


def test_accounts_are_printed(run: Run) -> None:
    assert run("sacctmgr", "-n", "-P", "show", "account", "format=account,descr") == (
        "root|root\nwg_astro|wg_astro\n"
    )
    assert run("sacctmgr", "-n", "-P", "list", "account", "wg_astro", "format=account") == (
        "wg_astro\n"
    )


def test_columns_have_widths(run: Run) -> None:
    form = "format=name,priority,grptresmins,usagefactor"
    assert run("sacctmgr", "show", "qos", form) == (
        "      Name   Priority   GrpTRESMins UsageFactor \n"
        "---------- ---------- ------------- ----------- \n"
        "    normal          0                  1.000000 \n"
        "      high        100                  1.000000 \n"
    )


def test_conditions_select(run: Run) -> None:
    words = ("sacctmgr", "-n", "-P", "show", "associations")
    assert run(*words, "where", "user=alice", "format=account,user") == "wg_astro|alice\n"
    assert run(*words, "account=root", "format=account") == "root\n"
    assert run("sacctmgr", "-n", "-P", "show", "qos", "high", "format=name") == "high\n"
    assert run("sacctmgr", "-n", "-P", "show", "user", "name=alice") == "alice|wg_astro|None\n"


def test_cluster_and_tres_are_printed(run: Run) -> None:
    assert run("sacctmgr", "-n", "-P", "show", "cluster") == "lab|ws17|high,normal\n"
    assert run("sacctmgr", "-n", "-P", "show", "tres").splitlines()[-1] == "gres|gpu|1001"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["add", "account", "x"], "fairbank project create"),
        (["create", "user", "x"], "fairbank project add-user"),
        (["remove", "user", "x"], "fairbank project remove-user"),
        (["modify", "account", "x"], "fairbank project set"),
        (["delete", "account", "x"], "fairbank project remove"),
        (["add", "qos", "x"], "wlm.toml"),
        (["frobnicate"], "sacctmgr only shows"),
    ],
    ids=" ".join,
)
def test_other_verbs_name_the_command_that_changes_it(
    run: Run, words: list[str], remedy: str
) -> None:
    assert remedy in run("sacctmgr", *words, fails=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show"], "No entity was given to show"),
        (["show", "colour"], "there is nothing to show of 'colour'"),
        (["show", "qos", "colour=red"], "Unknown condition: colour=red"),
        (["show", "qos", "format=colour"], 'Invalid field requested: "colour"'),
    ],
    ids=["nothing", "entity", "condition", "column"],
)
def test_bad_words_are_an_error(run: Run, words: list[str], message: str) -> None:
    assert run("sacctmgr", *words, fails=True).startswith(f"sacctmgr: error: {message}\n")


def test_accounting_is_read_back(run: Run) -> None:
    for table in (parser.PRIORITIES, parser.ASSOCIATION_FACTORS, parser.ASSOCIATIONS):
        parsed = table.read(run(*show_command(table, "cluster=lab")))
        assert [row.account for row in parsed.rows] == ["root", "wg_astro", "wg_astro"]
        assert parsed.unreadable == ()
    for columns in (parser.QOS, parser.QOS_FACTORS, QOS_LIMITS):
        rows = columns.read(run(*show_command(columns))).rows
        assert [row.name for row in rows] == ["normal", "high"]
