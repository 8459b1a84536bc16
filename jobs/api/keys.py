"""Who may use the API: whoever sends one of the configured keys. The name of the key is kept in the history."""

import hashlib
import hmac

from django.http import HttpRequest
from ninja.security import APIKeyHeader

from jobs.conf import settings


class ApiKey(APIKeyHeader):
    """The header `X-API-Key`; without configured keys nobody gets in."""

    param_name = "X-API-Key"

    def authenticate(self, request: HttpRequest, key: str | None) -> str | None:  # noqa: ARG002  ninja's signature
        """Return the name of the key, or None. Every key is compared, in constant time."""
        sent = _digest(key or "")
        found = None
        for name, known in settings.API_KEYS.items():
            if hmac.compare_digest(sent, _digest(known)):
                found = name
        return found


def actor_of(request: HttpRequest) -> str:
    """Return how the history names who sent this request."""
    return f"api:{request.auth}"  # type: ignore[attr-defined]  # set by ninja


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()
