"""The compilations that took longest, from the reports that `cargo build --timings` writes.

    slow_builds.py FOLDER [COUNT]

Durations are wall time, so what ran beside a compilation is in it.
"""
import json
import pathlib
import re
import sys


def units(report):
    """(seconds, what was compiled) of each compilation in a report."""
    found = re.search(r"^const UNIT_DATA = (\[.*?^\]);", report, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit("slow_builds.py: a report has no UNIT_DATA: has Cargo changed its format?")
    return [
        (unit["duration"], f"{unit['name']}{unit['target']}")
        for unit in json.loads(found.group(1))
    ]


def main(folder, count=15):
    # `cargo-timing.html` is a copy of the newest of the dated ones.
    reports = sorted(pathlib.Path(folder).glob("cargo-timing-*.html"))
    if not reports:
        sys.exit(f"slow_builds.py: {folder} has no report")
    rows = [row for report in reports for row in units(report.read_text())]
    print(f"\nSum of {len(rows)} compilations: {sum(row[0] for row in rows):.0f} s. Those that took longest:")
    for seconds, what in sorted(rows, reverse=True)[:count]:
        print(f"{seconds:7.0f} s  {what}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
