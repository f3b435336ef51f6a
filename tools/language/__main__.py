"""`python -m tools.language`: check the language of code and documentation.

known.json holds the number of places that break a rule today, by rule and top-level package.
A higher number fails the check; a lower one asks for `--update`. Without known.json all are 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.language.rules import RULES, Place, read_files

ROOT = Path(__file__).parents[2]
KNOWN = Path(__file__).with_name("known.json")

Counts = Mapping[str, Mapping[str, int]]
Places = Mapping[str, Sequence[Place]]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, known: Path = KNOWN) -> int:
    """Print what is wrong and return 1, or return 0.

    Args:
        arguments: of the command line; default: those of this process.
        root: directory of the repository.
        known: file with the counts that are accepted for now.
    """
    parser = argparse.ArgumentParser(prog="tools.language", description="Check the language.")
    parser.add_argument("--all", action="store_true", help="print every place, known or not")
    parser.add_argument("--update", action="store_true", help="write the counts to known.json")
    options = parser.parse_args(arguments)
    files = read_files(root)
    places = {name: list(rule(files)) for name, rule in RULES.items()}
    if options.all:
        print(*(place for group in places.values() for place in group), sep="\n")
        return 0
    if options.update:
        write_counts(known, counts_of(places))
        return 0
    accepted: Counts = json.loads(known.read_text()) if known.exists() else {}
    faults = list(differences(places, accepted, known.name))
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


def counts_of(places: Places) -> Counts:
    """Return the number of places by rule and package, without zeros."""
    counts = {rule: Counter(place.package for place in group) for rule, group in places.items()}
    return {rule: dict(sorted(group.items())) for rule, group in counts.items() if group}


def write_counts(known: Path, counts: Counts) -> None:
    """Write the counts, or delete the file when no place is left."""
    if counts:
        known.write_text(json.dumps(counts, indent=2) + "\n")
    else:
        known.unlink(missing_ok=True)


def differences(places: Places, accepted: Counts, name: str) -> Iterator[str]:
    """Report each rule and package whose count differs from the accepted one.

    Args:
        places: places that break a rule, by rule.
        accepted: counts read from the file.
        name: of the file.
    """
    counts = counts_of(places)
    for rule in RULES:
        now, before = counts.get(rule, {}), accepted.get(rule, {})
        for package in sorted(now.keys() | before.keys()):
            new, old = now.get(package, 0), before.get(package, 0)
            if new > old:
                yield from (str(place) for place in places[rule] if place.package == package)
                yield f"{package}: {rule}: {new} places, more than in {name} ({old})"
            elif new < old:
                yield (
                    f"{package}: {rule}: {new} places, fewer than in {name} ({old}); "
                    "run `python -m tools.language --update`"
                )


if __name__ == "__main__":
    sys.exit(main())
