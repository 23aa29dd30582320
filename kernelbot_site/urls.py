"""All addresses. The CLI owns /admin/, so Django's admin site is at /operators/.

/health and /static/ are answered before Django: asgi.py.
"""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from kernelbot_site.health import ready
from kernelbot_site.metrics import metrics
from kernelbot_site.openapi import pages
from kernelbot_site.operator_login import sign_in

handler400 = "kernelbot_site.errors.bad_request"
handler403 = "kernelbot_site.errors.forbidden"
handler404 = "kernelbot_site.errors.not_found"
handler500 = "kernelbot_site.errors.server_error"

admin.site.site_header = admin.site.site_title = "KernelBot operators"
admin.site.site_url = None  # there is no other site to view

urlpatterns = [
    path("operators/login/", sign_in),  # before the admin site, which has it without a limit
    path("operators/", admin.site.urls),
    path("ready", ready),
    path("metrics", metrics),
    path("api/schema/", pages.schema, name="schema"),
    path("openapi.json", pages.schema_json),
    path("docs", pages.docs, name="docs"),
    path("", include("leaderboards.identity.urls")),
    path("", include("leaderboards.api.urls")),
    path("", include("profiling.pages.urls")),
    path("", include("profiling.api.urls")),
    # Last: it takes any three segments.
    path("", include("profiling.api.catch_all")),
]
