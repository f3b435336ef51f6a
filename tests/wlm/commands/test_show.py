"""scontrol show and sdiag."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitUsage
from fairbank.report.slurm import scontrol
from fairbank.report.slurm.job_rows import JobLine, JobShare
from fairbank.report.slurm.machine_rows import LicenseLine, NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.notation import Notation
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine
from fairbank.report.slurm.sshare import ShareRow
from fairbank.report.slurm.steps import StepLine
from fairbank.slurm.parsers import config
from fairbank.slurm.parsers.limits import read_association_limits, read_qos_usage
from fairbank.slurm.parsers.machine import read_nodes, read_partitions
from fairbank.wlm.commands.arguments import CommandLine
from fairbank.wlm.commands.tables.show import show
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import NOW, Run, answer_with, last_rows, run

__all__ = ["run"]
JOB = JobLine(7, "fit", "alice", shares=(JobShare("n1", "0-1", 100),), nodes="n1", started=NOW)
STEP = StepLine(7, "7", step="0", name="hostname", nodes="n1", started=NOW, distribution="Block")
NODE = NodeLine("n1", "MIXED+DRAIN", cpus=4, reason="test", reason_user="root", reason_time=NOW)


class Shown:
    """Output, errors and exit code of scontrol show."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = 0

    def __call__(self, *words: str, options: Sequence[str] = ()) -> str:
        self.code = show(CommandLine(dict.fromkeys(options, ""), []), words)
        output, errors = self._capsys.readouterr()
        return output + errors


@pytest.fixture
def shown(controller: RecordingController, run: Run, capsys: pytest.CaptureFixture[str]) -> Shown:
    answer_with(
        controller,
        jobs=[JOB],
        nodes=[NODE],
        partitions=[PartitionLine("main", "n1", is_default=True)],
        reservations=[ReservationLine("maint", NOW, NOW + 60)],
        licenses=[LicenseLine("matlab", 10, 3, 1)],
        steps=[STEP],
    )
    return Shown(capsys)


@pytest.mark.parametrize(
    ("entity", "row", "template"),
    [
        ("job", JOB, scontrol.JOB),
        ("node", NODE, scontrol.NODE),
        ("partition", PartitionLine("main", "n1", is_default=True), scontrol.PARTITION),
        ("reservation", ReservationLine("maint", NOW, NOW + 60), scontrol.RESERVATION),
        ("step", STEP, scontrol.STEP),
    ],
    ids=["job", "node", "partition", "reservation", "step"],
)
def test_rows_are_shown_with_all_their_fields(
    shown: Shown, entity: str, row: object, template: Sequence[str]
) -> None:
    text = scontrol.show(row, template, Notation())
    assert shown(entity) == shown(f"{entity}s") == text
    one_line = scontrol.show(row, template, Notation(), is_one_line=True)
    assert shown(entity, options=["oneliner"]) == one_line
    details = scontrol.show(row, template, Notation(), has_details=True)
    assert shown(entity, options=["details"]) == details
    assert shown.code == 0


def test_name_is_sent(controller: RecordingController, shown: Shown) -> None:
    shown("job", "7_[1-2]")
    assert last_rows(controller).filter.jobs == ("7_[1-2]",)
    shown("node=n1")
    assert last_rows(controller).filter.nodes == ("n1",)
    shown("partition", "main")
    assert last_rows(controller).filter.partitions == ("main",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["job", "9"], "slurm_load_jobs error: Invalid job id specified\n"),
        (["node", "n9"], "Node n9 not found\n"),
        (["partition", "p"], "Partition p not found\n"),
        (["reservation", "r"], "Reservation r not found\n"),
        (["step", "9.0"], "slurm_get_job_steps error: Invalid job id specified\n"),
        (["config", "Colour"], "Setting Colour not found\n"),
        (["colour"], "invalid entity:colour for keyword:show\n"),
        ([], "too few arguments for keyword:show\n"),
        (["job", "1", "2"], "too many arguments for keyword:show:job\n"),
    ],
    ids=[
        "job",
        "node",
        "partition",
        "reservation",
        "step",
        "setting",
        "entity",
        "nothing",
        "too-much",
    ],
)
def test_what_does_not_exist_is_an_error(
    controller: RecordingController, shown: Shown, words: list[str], message: str
) -> None:
    answer_with(controller, jobs=[], nodes=[], partitions=[], reservations=[])
    assert shown(*words) == message
    assert shown.code == 1


def test_empty_lists_have_a_sentence(controller: RecordingController, shown: Shown) -> None:
    answer_with(controller, jobs=[], reservations=[], licenses=[], steps=[])
    assert shown("steps") == "No job steps in the system\n"
    assert shown("jobs") == "No jobs in the system\n"
    assert shown("reservations") == "No reservations in the system\n"
    assert shown("licenses") == "No licenses configured in Slurm.\n"
    assert shown.code == 0


def test_licenses_are_shown(shown: Shown) -> None:
    assert shown("lic") == ("LicenseName=matlab\n    Total=10 Used=3 Free=7 Reserved=1 Remote=no\n")


def test_config_is_read_back(controller: RecordingController, shown: Shown) -> None:
    text = shown("config")
    lines = text.splitlines()
    assert lines[0].startswith("Configuration data as of 20")
    assert lines[1] == "ClusterName             = lab"
    assert lines[-1] == "Slurmctld(primary) at ws17 is UP"
    assert config.read_config(text)["ClusterName"] == "lab"
    assert shown("config", "clustername").splitlines()[1:-2] == lines[1:2]


def test_limits_are_shown_with_their_usage(controller: RecordingController, shown: Shown) -> None:
    running = JobLine(1, user="alice", account="wg", qos="high", state="RUNNING",
                      allocated_tres="cpu=4,mem=2G")  # fmt: skip
    waiting = JobLine(2, user="alice", account="wg", accrued=NOW)
    answer_with(
        controller,
        associations=[
            AssociationLine("root", cluster="lab", number=1),
            AssociationLine(
                "wg", cluster="lab", parent="root", number=2, grp_jobs=5,
                grp_tres="cpu=10,mem=4096M", grp_tres_mins="cpu=1000", max_wall=3600,
            ),
            AssociationLine("wg", "alice", cluster="lab", number=3, max_jobs=2),
        ],
        qos=[
            QosLine("normal", 1),
            QosLine("high", 2, grp_tres="cpu=8", grp_wall=6000, usage=96.5, wall=1.5, used="cpu=6"),
        ],
        shares=[ShareRow("wg", used="cpu=70", wall=2.25)],
        jobs=[running, waiting],
    )  # fmt: skip
    text = shown("assoc_mgr", "flags=assoc,qos", options=["oneliner"])
    root, wg, alice = read_association_limits(text).rows
    assert (root.parent, wg.parent, alice.parent, alice.user) == ("", "root", "wg", "alice")
    assert wg.limits == AssociationLimits(
        tres={LimitKind.GRP_TRES: {"cpu": 10, "mem": 4096}, LimitKind.GRP_TRES_MINS: {"cpu": 1000}},
        jobs={LimitKind.GRP_JOBS: 5},
        wall={LimitKind.MAX_WALL: 60},
    )
    assert wg.used.seconds == {"cpu": 4200.0}
    assert alice.limits.jobs == {LimitKind.MAX_JOBS: 2}
    assert "GrpJobs=5(1) GrpJobsAccrue=N(1) GrpSubmitJobs=N(2)" in text
    assert "GrpTRES=cpu=10(4),mem=4096(2048)" in text
    assert "GrpWall=N(2.25)" in text
    normal, high = read_qos_usage(text).rows
    assert (normal.name, normal.used, high.name) == ("normal", LimitUsage(), "high")
    assert "UsageRaw=96.500000" in text
    assert "GrpWall=100(1.50)" in text
    assert high.used.seconds == {"cpu": 360.0}
    assert "ID=1\n" not in shown("assoc_mgr", "account=wg", "flags=assoc")


def test_host_lists_are_written_and_expanded(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown("hostnames", "n[1-3]") == "n1\nn2\nn3\n"
    assert shown("hostlist", "n3,n1,n2") == "n[3,1-2]\n"
    assert shown("hostlistsorted", "n3,n1,n2") == "n[1-3]\n"
    monkeypatch.setenv("SLURM_JOB_NODELIST", "m[1-2]")
    assert shown("hostnames") == "m1\nm2\n"
    assert shown("daemons") == "slurmctld slurmd \n"


def test_machine_is_read_back(shown: Shown) -> None:
    nodes = read_nodes(shown("node", options=["oneliner"]))
    assert [node.name for node in nodes.rows] == ["n1"]
    partitions = read_partitions(shown("partition", options=["oneliner"]))
    assert [rules.name for rules in partitions.rows] == ["main"]


@pytest.mark.parametrize("entity", ["job", "node", "partition", "reservation"])
def test_json_has_slurms_shape(shown: Shown, entity: str) -> None:
    document = json.loads(shown(entity, options=["json"]))
    assert len(document[f"{entity}s"]) == 1
    assert document["last_update"]["number"] == NOW
    if entity == "node":
        assert document["nodes"][0]["state"] == ["MIXED", "DRAIN"]


def test_figures_are_printed_as_sdiag_does(controller: RecordingController, run: Run) -> None:
    counts = {"count": 7, "average_time": 190, "total_time": 1331}
    figures = {
        "req_time": NOW,
        "jobs_submitted": 12,
        "schedule_cycle_last": 345,
        "rpcs_by_message_type": [
            {"message_type": "REQUEST_PING", "type_id": 1008, **counts, "count": 1},
            {"message_type": "REQUEST_JOB_INFO", "type_id": 2003, **counts},
        ],
        "rpcs_by_user": [{"user": "alice", "user_id": 1000, **counts}],
    }
    answer_with(controller, figures=figures)
    text = run("sdiag")
    numbers = "ave_time:190    total_time:1331\n"
    assert (
        "\nRemote Procedure Call statistics by message type\n"
        f"\tREQUEST_JOB_INFO                        ( 2003) count:7      {numbers}"
        f"\tREQUEST_PING                            ( 1008) count:1      {numbers}"
        "\nRemote Procedure Call statistics by user\n"
        f"\talice           (    1000) count:7      {numbers}"
        "\nPending RPC statistics\n\tNo pending RPCs\n"
    ) in text
    assert f"sdiag output at Sat Nov 21 07:31:37 2026 ({NOW})\n" in text
    assert "Jobs submitted: 12\nJobs started:   N/A\n" in text
    assert "\tLast cycle:   345\n" in text
