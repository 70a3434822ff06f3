"""Addresses of the project's panel."""

from django.urls import re_path

from ebbtide_dashboard.project import views

urlpatterns = [
    re_path(r"^$", views.IndexView.as_view(), name="index"),
    re_path(r"^states$", views.StatesView.as_view(), name="states"),
    re_path(r"^advice$", views.AdviceView.as_view(), name="advice"),
    re_path(
        r"^(?P<server_id>[0-9a-fA-F-]{36})/$",
        views.DetailView.as_view(),
        name="detail",
    ),
]
