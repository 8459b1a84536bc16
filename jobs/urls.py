"""Dilamme's addresses, for `path("", include("jobs.urls"))` in a host project."""

from django.urls import path, re_path

from jobs.api import monitoring, routes

urlpatterns = [
    path("health", monitoring.health, name="dilamme_health"),
    path("metrics", monitoring.metrics, name="dilamme_metrics"),
    path("api/v1/", routes.urls()),
    re_path(r"^api/v1/", routes.not_found),
]
