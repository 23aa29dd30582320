"""All addresses. The CLI owns /admin/, so Django's admin site is at /operators/."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

handler400 = "kernelbot_site.errors.bad_request"
handler403 = "kernelbot_site.errors.forbidden"
handler404 = "kernelbot_site.errors.not_found"
handler500 = "kernelbot_site.errors.server_error"

urlpatterns = [path("operators/", admin.site.urls)]
