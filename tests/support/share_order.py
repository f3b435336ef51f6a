"""Order in which sshare lists the associations of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.report.slurm.sshare import ShareRow


def in_order(rows: Sequence[ShareRow]) -> list[ShareRow]:
    """Return the rows with, below each account, its users, then its accounts, each by bytes."""
    parents = {row.account: row.parent for row in rows if not row.user}

    def lineage(row: ShareRow) -> bytes:
        path, name = "/", row.account
        while name and parents.get(name):  # the root has no parent and is the first /
            path = f"/{name}{path}"
            name = parents[name]
        if row.user:
            path += f"0-{row.user}/" + (f"{row.partition}/" if row.partition else "")
        return path.encode()

    return sorted(rows, key=lineage)
