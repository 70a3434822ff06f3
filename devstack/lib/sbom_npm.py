"""Adds to a bill of materials what the console contains: sbom_npm.py FILE PACKAGE_LOCK.

The scheduler has the console's built files in it, so that Cargo does not know these packages.
"""

import base64
import json
import sys


def components(lock):
    """The packages that a lock file of npm has for more than development."""
    with open(lock, encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for path, package in sorted(packages.items()):
        if not path or package.get("dev") or package.get("devOptional"):
            continue
        name = path.rpartition("node_modules/")[2]
        kind, _, digest = package["integrity"].partition("-")
        if kind != "sha512":
            sys.exit("%s: %s has no sha512" % (lock, name))
        purl = "pkg:npm/%s@%s" % (name.replace("@", "%40"), package["version"])
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": package["version"],
            "scope": "required",
            "hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}],
            "licenses": [{"expression": package["license"]}],
            "purl": purl,
        }


def main(path, lock):
    with open(path, encoding="utf-8") as file:
        bill = json.load(file)
    added = list(components(lock))
    bill["components"] += added
    program = bill["metadata"]["component"]["bom-ref"]
    refs = [component["bom-ref"] for component in added]
    for entry in bill.get("dependencies", []):
        if entry["ref"] == program:
            entry["dependsOn"] = sorted(entry.get("dependsOn", []) + refs)
    bill.setdefault("dependencies", []).extend({"ref": ref} for ref in refs)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(bill, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
