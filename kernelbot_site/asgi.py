"""What the web server runs: Django behind a few wrappers, the outermost first.

The web server's own options are part of the contract (keep-alive, no trust in forwarded headers):
they are in supervisor.py.
"""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
django = get_asgi_application()  # before anything that needs settings

from django.conf import settings  # noqa: E402
from servestatic import ServeStaticASGI  # noqa: E402

from kernelbot_site.asgi_types import App  # noqa: E402
from kernelbot_site.asgi_wrappers import (  # noqa: E402
    AnswerHealth,
    CollapseSlashes,
    NameRequests,
    ShareThreads,
)
from kernelbot_site.body_limit import LimitBody  # noqa: E402
from kernelbot_site.open_streams import CountStreams  # noqa: E402

VIEW_THREADS = 8


def with_static_files(app: App) -> App:
    """The admin's style sheets, when `collectstatic` has been run."""
    if not settings.STATIC_ROOT.is_dir():
        return app
    served: App = ServeStaticASGI(app, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL)
    return served


application = NameRequests(
    CollapseSlashes(
        AnswerHealth(
            with_static_files(CountStreams(ShareThreads(LimitBody(django), threads=VIEW_THREADS)))
        )
    )
)
