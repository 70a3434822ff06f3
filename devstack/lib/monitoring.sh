#!/usr/bin/env bash
# Checks what packaging has for Prometheus and Grafana without either of them running: the
# configuration, the rules, each alert with a case that fires and one that does not, and that the
# dashboards are what their source makes. What data they show is tests/end-to-end's business
# (tests/e2e/monitoring).
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."

# What they say is of interest only if something is wrong.
checked() {
    local said
    said=$("$@" 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
}

python3 packaging/grafana/dashboards.py --check
cd packaging/prometheus
checked promtool check config prometheus.yml
checked promtool check rules ebbtide-recording.yml ebbtide-alerts.yml
checked promtool test rules ebbtide-alerts-test.yml
