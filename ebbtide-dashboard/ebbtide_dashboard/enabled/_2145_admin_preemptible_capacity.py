"""Adds the operator's panel."""

PANEL = "preemptible_capacity"
PANEL_DASHBOARD = "admin"
PANEL_GROUP = "compute"
ADD_PANEL = "ebbtide_dashboard.admin.panel.PreemptibleCapacity"
