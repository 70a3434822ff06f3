#!/usr/bin/python3
"""Puts every query of the dashboards and recording rules to a Prometheus, and names those without
data. Exit code 1 if there are any.

    devstack/lib/dashboard_queries.py http://127.0.0.1:9090
"""

import json
import pathlib
import sys
import urllib.parse
import urllib.request

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"


def ask(base, path):
    with urllib.request.urlopen(f"{base}/api/v1/{path}", timeout=30) as answer:
        return json.load(answer)["data"]


def queries(base):
    for path in sorted((PACKAGING / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}, {panel['title']}", target["expr"]
    for group in ask(base, "rules?type=record")["groups"]:
        for rule in group["rules"]:
            yield "recorded", rule["name"]


def main():
    base = sys.argv[1].rstrip("/")
    asked = empty = 0
    for place, query in queries(base):
        asked += 1
        found = ask(base, "query?" + urllib.parse.urlencode({"query": query}))["result"]
        if all(series["value"][1] == "NaN" for series in found):
            empty += 1
            print(f"no data: {place}: {query}")
    print(f"{asked} queries, {empty} without data")
    return 1 if empty else 0


sys.exit(main())
