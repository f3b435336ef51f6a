"""sinfo: groups of nodes, as a real Slurm printed them."""

from __future__ import annotations

import json

import pytest

from fairbank.report.slurm import sinfo
from fairbank.report.slurm.machine_rows import NodeLine, PartitionLine, ReservationLine
from tests.report.slurm.test_queue_tables import CPU, GPU, SINFO
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import NOW, Run, answer_with, last_rows, run

__all__ = ["run"]
PARTITIONS = [CPU._replace(nodes="c[01-12]"), GPU._replace(nodes="g[01-04]")]


def node(number: int) -> NodeLine:
    """Return node c01, c02, ... of the recorded cluster."""
    is_busy = number < 9
    return NodeLine(
        f"c{number:02}",
        "ALLOCATED" if is_busy else "IDLE",
        sockets=2,
        cores=16,
        cpus=32,
        allocated_cpus=32 * is_busy,
        memory=192_000,
        features="cpu",
    )


GPU_NODE = NodeLine("g01", "MIXED", sockets=2, cores=24, cpus=48, allocated_cpus=16,
                    memory=512_000, weight=10, features="gpu")  # fmt: skip
NODES = [
    *(node(number) for number in range(1, 13)),
    GPU_NODE,
    *(
        GPU_NODE._replace(name=f"g0{number}", state="IDLE+PLANNED", allocated_cpus=0)
        for number in (2, 3, 4)
    ),
]


@pytest.fixture(autouse=True)
def machine(controller: RecordingController) -> None:
    answer_with(controller, nodes=NODES[::-1], partitions=PARTITIONS)


def test_groups_are_printed_in_slurms_order(run: Run) -> None:
    assert run("sinfo") == SINFO[sinfo.FORMAT]
    assert run("sinfo", "-h") == SINFO[sinfo.FORMAT].partition("\n")[2]


def test_each_node_has_a_line(run: Run) -> None:
    date, *lines = run("sinfo", "-N", "-l").splitlines()
    recorded = SINFO[sinfo.LONG_NODE_FORMAT].splitlines()
    assert date == "Sat Nov 21 07:31:37 2026"
    assert len(lines) == 17
    assert [lines[0], lines[1], lines[14]] == recorded


def test_partitions_are_summed_up(run: Run) -> None:
    assert run("sinfo", "-s") == (
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n"
        "cpu*         up 7-00:00:00         8/4/0/12 c[01-12]\n"
        "gpu          up 7-00:00:00          1/3/0/4 g[01-04]\n"
    )


def test_reasons_are_listed_for_nodes_that_have_one(
    controller: RecordingController, run: Run
) -> None:
    assert run("sinfo", "-R") == SINFO[sinfo.REASON_FORMAT]
    bad = [
        NODES[number]._replace(
            state="DOWN+NOT_RESPONDING", reason="no power", reason_user="root", reason_time=NOW
        )
        for number in (0, 1)
    ]
    answer_with(controller, nodes=[*bad, *NODES[2:]], partitions=PARTITIONS)
    assert run("sinfo", "-h", "-R") == (
        "no power             root      2026-11-21T07:31:37 c[01-02]\n"
    )
    assert run("sinfo", "-h", "-d", "-o", "%t %N") == "down* c[01-02]\n"
    assert "down" not in run("sinfo", "-h", "-r", "-o", "%t %N")


def test_sizes_that_differ_share_a_line_unless_exact(
    controller: RecordingController, run: Run
) -> None:
    small = node(9)._replace(memory=64_000)
    answer_with(controller, nodes=[small, node(10)], partitions=PARTITIONS[:1])
    assert run("sinfo", "-h", "-o", "%m %N") == "64000+ c[09-10]\n"
    assert run("sinfo", "-h", "-e", "-S", "m", "-o", "%m %N") == "64000 c09\n192000 c10\n"


def test_only_fields_of_the_columns_are_requested(
    controller: RecordingController, run: Run
) -> None:
    run("sinfo", "-h", "-S", "N", "-o", "%N %c")
    assert set(last_rows(controller).columns) == {"name", "state", "cpus", "reason"}


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("IDLE+DRAIN", "drain"),
        ("MIXED+DRAIN", "drng"),
        ("DOWN*", "down*"),
        ("DOWN+DRAIN+NOT_RESPONDING", "down*"),
        ("IDLE+COMPLETING", "comp"),
        ("IDLE+RESERVED", "resv"),
        ("FAIL", "fail"),
        ("UNKNOWN*", "unk*"),
    ],
)
def test_state_is_the_word_that_counts_most(
    controller: RecordingController, run: Run, state: str, shown: str
) -> None:
    answer_with(controller, nodes=[node(1)._replace(state=state)], partitions=PARTITIONS[:1])
    assert run("sinfo", "-h", "-o", "%t") == f"{shown}\n"


def test_states_select_nodes(run: Run) -> None:
    assert run("sinfo", "-h", "-t", "idle", "-o", "%N") == "c[09-12]\n"
    assert run("sinfo", "-h", "-t", "alloc,mix", "-o", "%t %N") == "alloc c[01-08]\nmix g01\n"
    error = run("sinfo", "-t", "bad", fails=True)
    assert error.startswith('sinfo: error: Bad state string: "bad"\n')


def test_empty_partition_has_a_line(controller: RecordingController, run: Run) -> None:
    answer_with(controller, nodes=[], partitions=[PartitionLine("empty")])
    assert run("sinfo", "-h") == "empty        up   infinite      0    n/a \n"


def test_nodes_of_partitions_that_look_alike_are_merged(
    controller: RecordingController, run: Run
) -> None:
    both = [PARTITIONS[0], PARTITIONS[0]._replace(name="long", is_default=False)]
    answer_with(controller, nodes=NODES[:12], partitions=both)
    assert run("sinfo", "-h", "-o", "%D %N") == "12 c[01-12]\n"
    assert len(run("sinfo", "-h", "-o", "%P %D").splitlines()) == 2


def test_variables_stand_for_options(
    controller: RecordingController, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINFO_FORMAT", "%R")
    monkeypatch.setenv("SINFO_PARTITION", "gpu")
    assert run("sinfo", "-h").split()[0] == "cpu"
    partitions = [
        request for request in controller.requests if getattr(request, "of", "") == "partitions"
    ]
    assert partitions[-1].filter.partitions == ("gpu",)  # type: ignore[union-attr]
    assert run("sinfo", "-s").startswith("PARTITION AVAIL")


def test_reservations_are_listed(controller: RecordingController, run: Run) -> None:
    answer_with(controller, reservations=[])
    assert run("sinfo", "-T") == "No reservations in the system\n"
    row = ReservationLine("maintenance", NOW, NOW + 7200, "c[01-02]", is_active=True)
    answer_with(controller, reservations=[row])
    assert run("sinfo", "-T") == (
        "RESV_NAME       STATE           START_TIME             END_TIME     DURATION  NODELIST\n"
        "maintenance    ACTIVE  2026-11-21T07:31:37  2026-11-21T09:31:37      2:00:00  c[01-02]\n"
    )


def test_json_has_slurms_shape(run: Run) -> None:
    groups = json.loads(run("sinfo", "--json"))["sinfo"]
    assert [group["nodes"]["total"] for group in groups] == [8, 4, 3, 1]
    assert groups[0]["node"]["state"] == ["ALLOCATED"]
    assert groups[0]["partition"]["name"] == "cpu"
    assert groups[3]["cpus"]["idle"] == 32
