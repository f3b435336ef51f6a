"""`python -m benchmarks` (see `make bench`): measure the claims, keep the figures, write the
page.
"""

from __future__ import annotations

import argparse

from benchmarks.claims import CLAIMS, figures, write_page
from benchmarks.measure import NotAvailable, to_stderr
from benchmarks.page import FIGURES, PAGE, amount, bound_text, verdict
from benchmarks.results import RESULTS, SHORT, Claim, save_claim, this_machine
from tests.slurm.lab.packages import Unobtainable


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the claims and write docs/performance.md."
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="a few rounds of everything, for CI; the page stays as it is",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=CLAIMS,
        metavar="CLAIM",
        help=f"one of {', '.join(CLAIMS)}; may be repeated",
    )
    parser.add_argument(
        "--draw",
        action="store_true",
        help="measure nothing; write the page from the stored results",
    )
    options = parser.parse_args()
    if not options.draw:
        for name in options.only or CLAIMS:
            _measure(name, short=options.short)
    if not options.short:
        PAGE.write_text(write_page(RESULTS))
        for name, picture in figures(RESULTS).items():
            FIGURES.mkdir(exist_ok=True)
            (FIGURES / name).write_bytes(picture)
        to_stderr(f"drawn: docs/{PAGE.name}")


def _measure(name: str, *, short: bool) -> None:
    to_stderr(f"--- {name}")
    machine = this_machine()
    try:
        claim = Claim(name, machine, CLAIMS[name](short=short, say=to_stderr))
    except (NotAvailable, Unobtainable) as why:  # no traces, or no Slurm here
        to_stderr(f"{name} is not measured: {why}")
        return
    save_claim(claim, SHORT if short else RESULTS)
    for table in claim.tables:
        for figure in table.figures:
            print(f"{table.title}: {figure.name}: {amount(figure.median, figure.unit)}")
        for target in table.targets:
            print(
                f"{table.title}: {target.name}: {amount(target.value, target.unit)}; target"
                f" {bound_text(target)} {verdict(target)}".rstrip()
            )


if __name__ == "__main__":
    main()
