"""The address of the live view, for the `URLRouter` of a host project."""

from django.urls import path

from jobs.live.consumer import LiveConsumer

websocket_urlpatterns = [path("ws/dilamme/", LiveConsumer.as_asgi())]
