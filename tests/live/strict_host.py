"""The reference host under a content security policy that lets a page load nothing but files of its own site."""

from typing import Any

from dilamme_project.asgi import application as host

_POLICY = (b"content-security-policy", b"default-src 'self'")


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve the host, with the policy on every answer."""

    async def send_strictly(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event["headers"], _POLICY]}
        await send(event)

    await host(scope, receive, send_strictly)
