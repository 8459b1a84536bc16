"""Dilamme's addresses, for `path("", include("jobs.urls"))` in a host project."""

from django.urls import path, re_path

from jobs.api import routes

urlpatterns = [
    path("health", routes.health, name="dilamme_health"),
    path("api/v1/", routes.urls()),
    re_path(r"^api/v1/", routes.not_found),
]
