#!/usr/bin/python3
"""Writes the Grafana dashboards of Ebbtide beside this file, one JSON document each.

    packaging/grafana/dashboards.py           writes them
    packaging/grafana/dashboards.py --check   says which are not what this file makes of them

A panel is (title, kind, unit, what it shows, {legend: query}). Queries have no variables of
Grafana: a test puts each to a Prometheus as it is.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
STAT, LINES, STACK = "stat", "timeseries", "stack"

OPERATIONS = [
    ("Schedulers that answer", STAT, "short", "Of all in Prometheus' configuration.",
     {"": 'sum(up{job="ebbtide-scheduler"})'}),
    ("Agents that are ready", STAT, "short", "Agents that can do all of their work.",
     {"": "sum(ebbtide_agent_ready)"}),
    ("Hosts", STAT, "short", "Hosts that the scheduler knows.",
     {"": "max(sum by (instance) (ebbtide_hosts))"}),
    ("Alerts", STAT, "short", "Alerts of Ebbtide that fire.",
     {"": 'count(ALERTS{alertname=~"Ebbtide.*",alertstate="firing"}) or vector(0)'}),
    ("Requests", STACK, "reqps", "Requests for servers by outcome.",
     {"{{kind}}": "ebbtide:requests:rate5m"}),
    ("Time of a request", LINES, "s",
     "With exemplars: a region's point has the decision's id for `ebbtide explain`, one of an "
     "OpenStack the request's id for the logs.",
     {"median": "ebbtide:request_seconds:p50_5m", "95 %": "ebbtide:request_seconds:p95_5m",
      # Recorded series have no exemplars.
      "99 %": "histogram_quantile(0.99, sum by (le) (rate(ebbtide_decision_seconds_bucket[5m]) "
      'or rate(ebbtide_request_seconds_bucket{kind="whole"}[5m])))'}),
    ("Time of the database", LINES, "s",
     "A region's transaction; on an OpenStack what changed in Nova's databases. 95 %.",
     {"95 %": "ebbtide:database_seconds:p95_5m"}),
    ("Claims refused", LINES, "percentunit", "Part of the claims.",
     {"refused": "ebbtide:claims_refused:ratio5m"}),
    ("Refused calls", STACK, "reqps", "Calls, connections and reports by reason.",
     {"{{kind}}": "sum by (kind) (rate(ebbtide_refusals_total[5m])) or on () vector(0)"}),
    ("Messages that wait", LINES, "short", "Messages that the broker has not confirmed.",
     {"{{instance}}": "ebbtide_outbox_messages or on () vector(0)"}),
    ("Hypervisor calls that fail", STACK, "reqps", "By host.",
     {"{{host}}": 'sum by (host) (rate(ebbtide_agent_hypervisor_calls_total{outcome="failed"}[5m]))'
      }),
    ("Findings of the audit", STACK, "short", "By code, from `ebbtide-manage audit --metrics`.",
     {"{{code}}": "max by (code) (ebbtide_audit_findings)"}),
]

CAPACITY = [
    ("Earned in an hour", STAT, "none", "Running preemptible servers at present prices.",
     {"": "sum(ebbtide:earnings_per_hour) or vector(0)"}),
    ("CPUs sold as preemptible", STAT, "percentunit", "Part of the capacity.",
     {"": 'ebbtide:sold:ratio{resource_class="VCPU"}'}),
    ("CPUs free for normal servers", STAT, "short", "h_n: what a normal server can have.",
     {"": 'ebbtide:free{resource_class="VCPU",state="normal"}'}),
    ("CPUs free for all", STAT, "short", "h_f: what a preemptible server can have.",
     {"": 'ebbtide:free{resource_class="VCPU",state="full"}'}),
    ("CPUs: h_n and h_f", LINES, "short",
     "Between the two lines: what preemptible servers use and normal ones can have.",
     {"free for normal (h_n)": 'ebbtide:free{resource_class="VCPU",state="normal"}',
      "free for all (h_f)": 'ebbtide:free{resource_class="VCPU",state="full"}',
      "capacity": 'ebbtide:capacity{resource_class="VCPU"}'}),
    ("Memory: h_n and h_f", LINES, "decmbytes", "The same in MiB.",
     {"free for normal (h_n)": 'ebbtide:free{resource_class="MEMORY_MB",state="normal"}',
      "free for all (h_f)": 'ebbtide:free{resource_class="MEMORY_MB",state="full"}',
      "capacity": 'ebbtide:capacity{resource_class="MEMORY_MB"}'}),
    ("CPUs in use", STACK, "short", "By kind of server.",
     {"{{kind}}": 'ebbtide:used{resource_class="VCPU"}'}),
    ("Sold as preemptible", LINES, "percentunit", "Part of the capacity, by resource class.",
     {"{{resource_class}}": "ebbtide:sold:ratio"}),
    ("Earned in an hour", STACK, "none", "By project, at present prices.",
     {"{{project_id}}": "ebbtide:earnings_per_hour"}),
    ("Prices", LINES, "none", "Of a server for an hour, by flavor.",
     {"{{flavor}}": "ebbtide:price_per_hour"}),
    ("Headroom is free", LINES, "short", "1 while the headroom is there. OpenStack mode.",
     {"{{flavor}} {{aggregate}}": "min by (flavor, aggregate) (ebbtide_headroom_is_free)"}),
]

EVACUATIONS = [
    ("Under way", STAT, "short", "Evacuations that have not ended.",
     {"": "ebbtide:evacuations_under_way"}),
    ("Beyond their grace period", STAT, "s", "The latest one under way.",
     {"": "ebbtide:evacuation_overtime_seconds"}),
    ("Failed in an hour", STAT, "short", "Victims that are not gone after all attempts.",
     {"": 'sum(ebbtide:evacuations:increase1h{kind="failed"}) or vector(0)'}),
    ("Gone in an hour", STAT, "short", "Victims that left.",
     {"": 'sum(ebbtide:evacuations:increase1h{kind=~"evacuated|gone"})'}),
    ("Evacuations in an hour", STACK, "short", "By the state that they came to.",
     {"{{kind}}": "ebbtide:evacuations:increase1h"}),
    ("Beyond their grace period", LINES, "s", "The latest one under way.",
     {"longest": "ebbtide:evacuation_overtime_seconds"}),
    ("Decisions with victims", LINES, "percentunit", "Part of the requests that found room.",
     {"with victims": 'sum(rate(ebbtide_decisions_total{kind="placed-by-preemption"}[5m])) '
      '/ sum(rate(ebbtide_decisions_total{kind=~"placed.*"}[5m])) '
      'or sum(rate(ebbtide_preemptions_total{kind="done"}[5m])) '
      '/ sum(rate(ebbtide_requests_total{kind="answered"}[5m]))'}),
    ("Evacuations that agents remember", LINES, "short", "By host.",
     {"{{host}}": "ebbtide_agent_evacuations_remembered"}),
    ("Commands and reports of agents", LINES, "reqps", "All hosts.",
     {"commands": "sum(rate(ebbtide_agent_commands_total[5m]))",
      "reports": "sum(rate(ebbtide_agent_reports_total[5m]))"}),
    ("Ended without a preemptor", STACK, "short", "In an hour, by cause. OpenStack mode.",
     {"{{kind}}": "sum by (kind) (increase(ebbtide_ended_servers_total[1h]))"}),
    ("Room until victims were gone", LINES, "s", "95 %. OpenStack mode.",
     {"95 %": "histogram_quantile(0.95, sum by (le) "
      '(rate(ebbtide_request_seconds_bucket{kind="room"}[5m])))'}),
    ("Servers that wait to come back", LINES, "short", "OpenStack mode.",
     {"waiting": "max(ebbtide_servers_waiting)"}),
]

TENANTS = [
    ("Projects with preemptible servers", STAT, "short", "",
     {"": "count(count by (project_id) (ebbtide:preemptible_servers)) or vector(0)"}),
    ("Preemptible servers", STAT, "short", "That run.",
     {"": "sum(ebbtide:preemptible_servers) or vector(0)"}),
    ("Earned in an hour", STAT, "none", "At present prices.",
     {"": "sum(ebbtide:earnings_per_hour) or vector(0)"}),
    ("Preemptible servers by project", STACK, "short", "That run.",
     {"{{project_id}}": "sum by (project_id) (ebbtide:preemptible_servers)"}),
    ("Preemptible servers by flavor", STACK, "short", "That run.",
     {"{{flavor}}": "sum by (flavor) (ebbtide:preemptible_servers)"}),
    ("What projects pay in an hour", STACK, "none", "At present prices.",
     {"{{project_id}}": "ebbtide:earnings_per_hour"}),
    ("Largest projects", LINES, "short", "The ten with the most preemptible servers.",
     {"{{project_id}}": "topk(10, sum by (project_id) (ebbtide:preemptible_servers))"}),
    ("Servers by status", STACK, "short", "All projects. A region only.",
     {"{{kind}}": "max by (kind) (ebbtide_servers)"}),
]

DASHBOARDS = {
    "operations": ("Ebbtide: operations", OPERATIONS),
    "capacity": ("Ebbtide: capacity and what it earns", CAPACITY),
    "evacuations": ("Ebbtide: evacuations", EVACUATIONS),
    "tenants": ("Ebbtide: tenants", TENANTS),
}

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number, spec, place):
    title, kind, unit, description, queries = spec
    targets = [
        {"refId": chr(ord("A") + n), "datasource": SOURCE, "expr": query, "legendFormat": legend,
         "exemplar": kind == LINES, "instant": kind == STAT, "range": kind != STAT}
        for n, (legend, query) in enumerate(queries.items())
    ]
    custom = {"lineWidth": 1, "fillOpacity": 30 if kind == STACK else 0,
              "stacking": {"mode": "normal" if kind == STACK else "none", "group": "A"}}
    defaults = {"unit": unit, **({} if kind == STAT else {"custom": custom})}
    return {"id": number, "type": STAT if kind == STAT else LINES, "title": title,
            "description": description, "gridPos": place, "datasource": SOURCE,
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": {},
            "targets": targets}


def places(panels):
    """Small numbers four a row, charts two a row."""
    x = y = height = 0
    for spec in panels:
        wide, high = (6, 4) if spec[1] == STAT else (12, 8)
        if x + wide > 24 or high != height:
            x, y, height = 0, y + height, high
        yield {"x": x, "y": y, "w": wide, "h": high}
        x += wide


def dashboard(name):
    title, panels = DASHBOARDS[name]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}
    made = {
        "uid": f"ebbtide-{name}", "title": title, "tags": ["ebbtide"], "editable": False,
        "schemaVersion": 37, "version": 1, "refresh": "30s", "timezone": "",
        "time": {"from": "now-6h", "to": "now"}, "templating": {"list": [source]},
        "links": [{"type": "dashboards", "tags": ["ebbtide"], "title": "Ebbtide"}],
        "panels": [panel(n, spec, place)
                   for n, (spec, place) in enumerate(zip(panels, places(panels)), 1)],
    }
    return json.dumps(made, indent=1) + "\n"


def main():
    stale = []
    for name in DASHBOARDS:
        path, text = HERE / f"ebbtide-{name}.json", dashboard(name)
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"not as packaging/grafana/dashboards.py makes them: {', '.join(stale)}; run it")


main()
