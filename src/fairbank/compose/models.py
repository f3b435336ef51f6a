"""Synthetic workloads (cli.simulated.Models)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairbank.service.simulation.synthetic import CentreSettings, Modelled, centre_of, read_centre


class Models:
    """Workloads that a model draws."""

    def workload(self, file: str | None, *, jobs: int | None, seed: int) -> Modelled:
        """That of the centre in a file, or of the usual one; with as many jobs as it says, or as are asked for."""
        settings = CentreSettings() if file is None else read_centre(Path(file))
        return Modelled(
            centre_of(settings if jobs is None else msgspec.structs.replace(settings, jobs=jobs)),
            seed,
        )

    def save(self, workload: Modelled, path: str) -> None:
        """Write it as a trace."""
        workload.save(Path(path))
