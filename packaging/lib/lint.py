"""Judges what lintian and rpmlint say of the packages, for ./packaging/lint.

    lint.py ACCEPTED TOOL <WHAT_IT_SAID

Fails on errors and warnings that ACCEPTED does not list, and on entries of ACCEPTED for TOOL that
nothing needs. Each line of ACCEPTED is `TOOL PACKAGE TAG REASON…`, with a pattern as PACKAGE.
"""

import fnmatch
import re
import sys

# "W: ebbtide-agent: tag details" and "ebbtide-agent.x86_64: W: tag details".
LINES = {
    "lintian": re.compile(r"(?P<level>[EW]): (?P<package>[^ :]+)(?: \w+)?: (?P<tag>[^ ]+)(?P<details>.*)"),
    "rpmlint": re.compile(r"(?P<package>[^ :]+)\.\w+: (?P<level>[EW]): (?P<tag>[^ ]+)(?P<details>.*)"),
}


def accepted(text):
    """The entries of the list, without comments."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(None, 3)
        if len(fields) < 4 or fields[0] not in LINES:
            raise ValueError(f"line {number} is no tool, package, tag and reason: {line}")
        entries.append(tuple(fields))
    return entries


def judge(tool, said, entries):
    """What is wrong, as lines: findings that are not accepted, and entries that are not needed."""
    entries = [entry for entry in entries if entry[0] == tool]
    used, wrong = set(), []
    for line in said.splitlines():
        found = LINES[tool].fullmatch(line.rstrip())
        if not found:
            continue
        fitting = [
            entry
            for entry in entries
            if entry[2] == found["tag"] and fnmatch.fnmatchcase(found["package"], entry[1])
        ]
        used.update(fitting)
        if not fitting:
            wrong.append(line)
    for entry in entries:
        if entry not in used:
            wrong.append(f"not needed any more: {' '.join(entry[:3])}")
    return wrong


def main(path, tool):
    """Prints what is wrong; returns 1 if anything is."""
    with open(path, encoding="utf-8") as opened:
        entries = accepted(opened.read())
    wrong = judge(tool, sys.stdin.read(), entries)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
