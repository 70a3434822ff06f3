"""Looks at a bill of materials: sbom_check.py FILE LOCK [PACKAGE_LOCK], with `cargo tree --prefix
none --format {p}` of the program on standard input. PACKAGE_LOCK: npm's, if the program contains
packages of it."""

import json
import sys
import tomllib

from sbom_npm import components


def main(path, lock, package_lock=None):
    with open(path, encoding="utf-8") as file:
        bill = json.load(file)
    with open(lock, "rb") as file:
        packages = tomllib.load(file)["package"]
    locked = {(p["name"], p["version"]): p.get("checksum") for p in packages}
    problems = []
    if (bill.get("bomFormat"), bill.get("specVersion")) != ("CycloneDX", "1.5"):
        problems.append("it is not CycloneDX 1.5")
    of_npm = list(components(package_lock)) if package_lock else []
    problems += [
        "%s %s of npm is not in the file as it is in %s" % (c["name"], c["version"], package_lock)
        for c in of_npm
        if c not in bill["components"]
    ]
    named = {}
    for component in bill["components"]:
        if component in of_npm:
            continue
        which = component["name"], component["version"]
        hashes = {h["content"] for h in component.get("hashes", []) if h["alg"] == "SHA-256"}
        named[which] = hashes
        if which not in locked:
            problems.append("%s %s is not in %s" % (*which, lock))
        elif locked[which] and locked[which] not in hashes:
            problems.append("%s %s has another checksum, or none" % which)
        if not component.get("licenses"):
            problems.append("%s %s has no licence" % which)
    program = bill["metadata"]["component"]["bom-ref"]
    for line in sys.stdin:
        if line.strip():
            name, version = line.split()[:2]
            which = name, version.removeprefix("v")
            itself = "#%s@%s" % which in program
            if which not in named and not itself:
                problems.append("%s %s is in the program and not in the file" % which)
    if problems:
        sys.exit("%s: %s" % (path, "\n".join(sorted(set(problems)))))
    print("%s: %d components" % (path, len(named) + len(of_npm)))


if __name__ == "__main__":
    main(*sys.argv[1:])
