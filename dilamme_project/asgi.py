"""The reference host as an ASGI application: pages, their static files, and the live view's socket.

Without `DATABASE_URL` it starts the embedded PostgreSQL, as `manage.py` does.
"""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application
from django.urls import re_path

from dilamme_project import embedded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dilamme_project.settings")
embedded.provide_database()
pages = ASGIStaticFilesHandler(get_asgi_application())

from jobs.live.routing import websocket_urlpatterns  # noqa: E402  needs Django to be set up

sockets = URLRouter([*websocket_urlpatterns, re_path("", WebsocketDenier.as_asgi())])
application = ProtocolTypeRouter(
    {"http": pages, "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(sockets))}
)
