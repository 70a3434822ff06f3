"""Adds the project's panel, and marks and prices to the launch dialogue."""

PANEL = "preemptible_servers"
PANEL_DASHBOARD = "project"
PANEL_GROUP = "compute"
ADD_PANEL = "ebbtide_dashboard.project.panel.PreemptibleServers"
ADD_INSTALLED_APPS = ["ebbtide_dashboard"]
ADD_ANGULAR_MODULES = ["ebbtide"]
ADD_JS_FILES = ["ebbtide/servers.js", "ebbtide/launch.js"]
