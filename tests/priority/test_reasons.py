"""Slurm's names for reasons that hold a job."""

from __future__ import annotations

import pytest

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind, reason

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
