"""Slurm's names for reasons that hold a job."""

from __future__ import annotations

import pytest

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind, reason
from fairbank.priority.limits.usage import LimitTest

NAMES = ("cpu", "mem", "energy", "node", "billing", "gres/gpu", "license/matlab", "bb/cray", "vmem")


@pytest.mark.parametrize(
    ("owner", "kind", "expected"),
    [
        (
            ASSOC,
            LimitKind.GRP_TRES,
            (
                "AssocGrpCpuLimit AssocGrpMemLimit AssocGrpEnergy AssocGrpNodeLimit AssocGrpBilling"
                " AssocGrpGRES"
            ),
        ),
        (
            ASSOC,
            LimitKind.GRP_TRES_MINS,
            "AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpEnergyMinutes AssocGrpNodeMinutes",
        ),
        (
            ASSOC,
            LimitKind.GRP_TRES_RUN_MINS,
            "AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpEnergyRunMinutes",
        ),
        (
            ASSOC,
            LimitKind.MAX_TRES,
            "AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxEnergyPerJob AssocMaxNodePerJobLimit",
        ),
        (
            ASSOC,
            LimitKind.MAX_TRES_PER_NODE,
            "AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxEnergyPerNode AssocMaxUnknownPerNode",
        ),
        (
            ASSOC,
            LimitKind.MAX_TRES_MINS,
            "AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxEnergyMinutesPerJob",
        ),
        (
            QOS,
            LimitKind.GRP_TRES,
            (
                "QOSGrpCpuLimit QOSGrpMemLimit QOSGrpEnergy QOSGrpNodeLimit QOSGrpBilling"
                " QOSGrpGRES QOSGrpLicense QOSGrpBB"
            ),
        ),
        (
            QOS,
            LimitKind.GRP_TRES_MINS,
            "QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpEnergyMinutes QOSGrpNodeMinutes",
        ),
        (
            QOS,
            LimitKind.MAX_TRES_PER_USER,
            "QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxEnergyPerUser QOSMaxNodePerUserLimit",
        ),
        (
            QOS,
            LimitKind.MIN_TRES,
            (
                "QOSMinCpuNotSatisfied QOSMinMemory QOSMinEnergy QOSMinNode QOSMinBilling"
                " QOSMinGRES QOSMinLicense QOSMinBB"
            ),
        ),
        (
            QOS,
            LimitKind.MAX_TRES_PER_ACCOUNT,
            "MaxCpuPerAccount MaxMemoryPerAccount MaxEnergyPerAccount MaxNodePerAccount",
        ),
        (
            QOS,
            LimitKind.MAX_TRES_RUN_MINS_PER_USER,
            "MaxCpuRunMinsPerUser MaxMemoryRunMinsPerUser MaxEnergyRunMinsPerUser",
        ),
    ],
)
def test_every_tres_has_a_reason_name(owner: str, kind: LimitKind, expected: str) -> None:
    result = expected.split()
    assert [reason(owner, kind, name) for name in NAMES[: len(result)]] == result


def test_unnamed_tres_is_unknown() -> None:
    assert reason(ASSOC, LimitKind.GRP_TRES, "vmem") == "AssocGrpUnknown"
    assert (
        reason(QOS, LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT, "fs/lustre")
        == "MaxUnknownRunMinsPerAccount"
    )


def test_misspelled_slurm_reason_is_kept() -> None:
    assert reason(QOS, LimitKind.MAX_TRES_MINS, "bb/cray") == "AssocMaxBBMinutesPerJob"


@pytest.mark.parametrize(
    ("kind", "tres", "one", "several"),
    [
        (LimitKind.GRP_TRES, "cpu", "1 CPU", "2 CPUs"),
        (LimitKind.GRP_TRES_MINS, "node", "1 node-minute", "2 node-minutes"),
        (LimitKind.GRP_TRES, "mem", "1 MiB of memory", "2 MiB of memory"),
        (LimitKind.GRP_TRES_MINS, "mem", "1 MiB-minute of memory", "2 MiB-minutes of memory"),
        (LimitKind.GRP_TRES, "license/ansys", "1 license/ansys", "2 license/ansys"),
        (
            LimitKind.GRP_TRES_MINS,
            "license/ansys",
            "1 minute of license/ansys",
            "2 minutes of license/ansys",
        ),
        (LimitKind.GRP_WALL, None, "1 minute of wall time", "2 minutes of wall time"),
        (LimitKind.GRP_JOBS, None, "1 job", "2 jobs"),
    ],
)
def test_limit_of_one_is_singular_and_names_stay_whole(
    kind: LimitKind, tres: str | None, one: str, several: str
) -> None:
    for limit, amount in ((1, one), (2, several)):
        test = LimitTest(
            owner=ASSOC, name="of root", kind=kind, limit=limit, requested=9, tres=tres
        )
        assert f" allows {amount} (" in str(test)
