"""Survey of the NAS kernels: ``python -m integration.npb [--class S] [--kernel MG] [--where] [--json]``.

With ``--shares`` nothing is run: shares by formula, for larger classes too.

May import `suite`, `survey` and `shares`. Tests: ``integration/npb/test_survey.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# The kernels import each other by bare names.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import shares
from suite import CLASS_NAMES, KERNELS
from survey import Survey, survey

_ROW = "{:<7}{:<20}{:>10}{:>12}{:>9}   {:<10}{:<12}{:>9}{:>9}{:>13}"
_HEADINGS = ("kernel", "variable", "elements", "uncritical", "share", "verified", "poison")
_TIMES = ("run", "profile", "profile/run")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.npb",
        description="Profile the NAS kernels at the middle of their runs: how many elements of each "
        "checkpoint variable a restart does not need, and whether poison in all of them shows. The exit "
        "status is not zero if a run does not verify or poison shows.",
    )
    parser.add_argument(
        "--class", dest="class_name", choices=CLASS_NAMES, default="S", help="problem class (default: S)"
    )
    parser.add_argument(
        "--kernel", action="append", choices=tuple(KERNELS), help="only this kernel; may be repeated"
    )
    parser.add_argument(
        "--where", action="store_true", help="also print where the uncritical elements lie, and their state"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--shares",
        action="store_true",
        help="run nothing: print the uncritical share in per cent at the classes S to C, by formula",
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Print what was asked for; returns the exit status."""
    asked = _arguments(words)
    names = [name for name in KERNELS if not asked.kernel or name in asked.kernel]
    if asked.shares:
        _print_shares(names, asked.json)
        return 0
    return _print_surveys(names, asked.class_name, asked.json, asked.where)


def _print_surveys(names: Sequence[str], class_name: str, as_json: bool, where: bool) -> int:
    found: dict[str, Survey] = {}
    if not as_json:
        print(f"class {class_name}, checkpoint at the middle of the run; times in seconds")
        print(_ROW.format(*_HEADINGS, *_TIMES))
    for name in names:
        found[name] = survey(KERNELS[name], class_name)
        if not as_json:
            print("\n".join(_rows(name, found[name], where)), flush=True)
    if as_json:
        print(json.dumps({name: one.to_json_dict() for name, one in found.items()}, indent=2))
    return 0 if all(one.passed for one in found.values()) else 1


def _rows(name: str, found: Survey, where: bool) -> Iterator[str]:
    verdict = (
        "yes" if found.verified else "NO",
        found.poison,
        f"{found.run_seconds:.2f}",
        f"{found.profile_seconds:.2f}",
        f"{found.profile_over_run:.3f}",
    )
    if not found.variables:
        yield _ROW.format(name, "(profile refused)", "", "", "", *verdict)
    for number, (variable, count) in enumerate(found.variables.items()):
        numbers = (count.elements, count.uncritical, f"{count.percent:.2f} %")
        first = (name, verdict) if number == 0 else ("", ("",) * 5)
        yield _ROW.format(first[0], variable, *numbers, *first[1]).rstrip()
        if where:
            yield from (f"         {region}" for region in found.where[variable])


def _print_shares(names: Sequence[str], as_json: bool) -> None:
    counts = {name: {c: shares.counts_of(name, c) for c in shares.CLASS_NAMES} for name in names}
    if as_json:
        as_numbers = {
            name: {
                c: {v: {"elements": n.elements, "uncritical": n.uncritical} for v, n in found.items()}
                for c, found in classes.items()
            }
            for name, classes in counts.items()
        }
        print(json.dumps(as_numbers, indent=2))
        return
    row = "{:<7}{:<14}" + "{:>10}" * len(shares.CLASS_NAMES)
    print("uncritical share in per cent, by formula; counters left out")
    print(row.format("kernel", "variable", *shares.CLASS_NAMES))
    for name, classes in counts.items():
        for variable in classes["S"]:
            print(row.format(name, variable, *(f"{c[variable].percent:#.4g}" for c in classes.values())))
        if len(classes["S"]) > 1:
            print(
                row.format(
                    name, "together", *(f"{shares.together(c).percent:#.4g}" for c in classes.values())
                )
            )


if __name__ == "__main__":
    sys.exit(main())
