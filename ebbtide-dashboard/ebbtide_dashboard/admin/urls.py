"""Addresses of the operator's panel."""

from django.urls import re_path

from ebbtide_dashboard.admin import views

urlpatterns = [re_path(r"^$", views.IndexView.as_view(), name="index")]
