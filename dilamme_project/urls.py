"""Routes of the reference host: the admin, and Dilamme's API and health below the root."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("jobs.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
