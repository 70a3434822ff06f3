"""Writes the settings of cargo-generate-rpm for a crate from its [package.metadata.deb].

    rpm.py CARGO_TOML STAGE VERSION

There is one list of assets, the Debian one. Here it gets the places and the scripts of EL 9.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tomllib

# Debian's places and those of EL.
PLACES = {"usr/share/zsh/vendor-completions/": "usr/share/zsh/site-functions/"}

POST = """systemd-sysusers {package}.conf || :
systemd-tmpfiles --create {package}.conf || :
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
"""
PREUN = """[ "$1" -ne 0 ] || [ ! -d /run/systemd/system ] || systemctl --no-reload disable --now {units} || :
"""
POSTUN = """[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
[ "$1" -lt 1 ] || [ ! -d /run/systemd/system ] || systemctl try-restart {units} || :
"""


def main(manifest, stage, version):
    crate = tomllib.load(open(manifest, "rb"))
    deb = crate["package"]["metadata"]["deb"]
    folder = os.path.dirname(manifest)
    assets, units = [], []
    for source, to, mode in deb["assets"]:
        path = source.replace("target/release", stage + "/release", 1) if source.startswith("target/release") else os.path.join(folder, source)
        found = sorted(glob.glob(path))
        if not found:
            sys.exit(f"rpm.py: there is no {path}")
        to = PLACES.get(to, to)
        for file in found:
            name = os.path.basename(file)
            if name == "changelog.Debian.gz":
                continue
            if to.startswith("usr/lib/systemd/system/"):
                units.append(name.replace("@.", "@*."))
            asset = {"source": os.path.abspath(file), "dest": f"/{to}{name}", "mode": mode}
            if to.startswith("etc/"):
                asset["config"] = "noreplace"
            if to.startswith(("usr/share/doc/", "usr/share/man/")):
                asset["doc"] = True
            assets.append(asset)
    settings = {
        "name": deb["name"],
        "version": version.replace("~", "_"),
        "release": "1",
        "license": "Apache-2.0",
        "vendor": "The Ebbtide developers",
        "summary": crate["package"]["description"],
        "description": deb["extended-description"].strip(),
    }
    out = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    if units:
        names = {"package": deb["name"], "units": " ".join(f"'{unit}'" for unit in units)}
        for key, text in (("post_install_script", POST), ("pre_uninstall_script", PREUN), ("post_uninstall_script", POSTUN)):
            out.append(f"{key} = {json.dumps(text.format(**names))}")
    out.append("assets = [")
    for asset in assets:
        fields = ", ".join(f"{key} = {json.dumps(value)}" for key, value in asset.items())
        out.append(f"    {{ {fields} }},")
    out.append("]")
    out.append("[requires]")
    out.append(f'glibc = ">= {glibc(os.path.join(stage, "release", os.path.basename(deb["assets"][0][0])))}"')
    if units:
        out.append('systemd = "*"')
    print("\n".join(out))


def glibc(program):
    """The oldest C library that has all that a program asks for."""
    symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    return max(re.findall(r"GLIBC_([0-9]+(?:\.[0-9]+)+)", symbols), key=lambda version: [int(part) for part in version.split(".")])


main(*sys.argv[1:])
