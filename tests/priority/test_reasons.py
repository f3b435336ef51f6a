"""Slurm's names for what holds a job."""

from __future__ import annotations

import pytest

from fairbank.priority.limits.reasons import ASSOC, QOS, Kind, reason

NAMES = ("cpu", "mem", "energy", "node", "billing", "gres/gpu", "license/matlab", "bb/cray", "vmem")


@pytest.mark.parametrize(
    ("owner", "kind", "expected"),
    [
        (
            ASSOC,
            Kind.GRP_TRES,
            "AssocGrpCpuLimit AssocGrpMemLimit AssocGrpEnergy AssocGrpNodeLimit AssocGrpBilling AssocGrpGRES",
        ),
        (
            ASSOC,
            Kind.GRP_TRES_MINS,
            "AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpEnergyMinutes AssocGrpNodeMinutes",
        ),
        (
            ASSOC,
            Kind.GRP_TRES_RUN_MINS,
            "AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpEnergyRunMinutes",
        ),
        (
            ASSOC,
            Kind.MAX_TRES,
            "AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxEnergyPerJob AssocMaxNodePerJobLimit",
        ),
        (
            ASSOC,
            Kind.MAX_TRES_PER_NODE,
            "AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxEnergyPerNode AssocMaxUnknownPerNode",
        ),
        (
            ASSOC,
            Kind.MAX_TRES_MINS,
            "AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxEnergyMinutesPerJob",
        ),
        (
            QOS,
            Kind.GRP_TRES,
            "QOSGrpCpuLimit QOSGrpMemLimit QOSGrpEnergy QOSGrpNodeLimit QOSGrpBilling QOSGrpGRES QOSGrpLicense QOSGrpBB",
        ),
        (
            QOS,
            Kind.GRP_TRES_MINS,
            "QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpEnergyMinutes QOSGrpNodeMinutes",
        ),
        (
            QOS,
            Kind.MAX_TRES_PER_USER,
            "QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxEnergyPerUser QOSMaxNodePerUserLimit",
        ),
        (
            QOS,
            Kind.MIN_TRES,
            "QOSMinCpuNotSatisfied QOSMinMemory QOSMinEnergy QOSMinNode QOSMinBilling QOSMinGRES QOSMinLicense QOSMinBB",
        ),
        (
            QOS,
            Kind.MAX_TRES_PER_ACCOUNT,
            "MaxCpuPerAccount MaxMemoryPerAccount MaxEnergyPerAccount MaxNodePerAccount",
        ),
        (
            QOS,
            Kind.MAX_TRES_RUN_MINS_PER_USER,
            "MaxCpuRunMinsPerUser MaxMemoryRunMinsPerUser MaxEnergyRunMinsPerUser",
        ),
    ],
)
def test_each_tres_has_its_name(owner: str, kind: Kind, expected: str) -> None:
    wanted = expected.split()
    assert [reason(owner, kind, name) for name in NAMES[: len(wanted)]] == wanted


def test_a_tres_that_slurm_has_no_word_for_is_unknown() -> None:
    assert reason(ASSOC, Kind.GRP_TRES, "vmem") == "AssocGrpUnknown"
    assert (
        reason(QOS, Kind.MAX_TRES_RUN_MINS_PER_ACCOUNT, "fs/lustre")
        == "MaxUnknownRunMinsPerAccount"
    )


def test_slurms_misprint_is_kept() -> None:
    assert reason(QOS, Kind.MAX_TRES_MINS, "bb/cray") == "AssocMaxBBMinutesPerJob"
