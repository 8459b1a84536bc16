"""Settings of the reference host: everything from the environment, with defaults fit for one machine and nobody else.

A host project needs the lines marked "Dilamme" and nothing of the rest.
"""

import os
import sys
from pathlib import Path

import environ
from django.core.management.utils import get_random_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DEBUG = env.bool("DEBUG", default=False)
# Without a key of its own the host gets a new one at each start: sessions end with the process, nothing is guessable.
# Read past django-environ, which takes a value that begins with "$" for the name of another variable.
SECRET_KEY = os.environ.get("SECRET_KEY") or get_random_secret_key()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

INSTALLED_APPS = [
    # Before staticfiles, so that runserver speaks ASGI. A worker need not carry the libraries of a web server: 20 MB.
    *(["daphne"] if "runserver" in sys.argv else []),
    "jobs",  # Dilamme
    "workers",  # Dilamme; before channels, which has a runworker of its own
    "dilamme_project",
    "channels",
    "ninja",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "dilamme_project.urls"
ASGI_APPLICATION = "dilamme_project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": env.db("DATABASE_URL", default="postgres:///dilamme")}
DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / ".dilamme" / "static"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EMAIL_HOST = env("EMAIL_HOST", default="127.0.0.1")
EMAIL_PORT = env.int("EMAIL_PORT", default=25)
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", default="dilamme@localhost")

# Dilamme
DILAMME = {
    "API_KEYS": env.dict("DILAMME_API_KEYS", default={}),
    "WEBHOOK_ALLOW_PRIVATE": env.bool("DILAMME_WEBHOOK_ALLOW_PRIVATE", default=False),
    "LOG_DIRECTORIES": [str(BASE_DIR / "dilamme_project" / "samples")],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname:<7} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {"dilamme": {"handlers": ["stderr"], "level": env("LOG_LEVEL", default="INFO")}},
}
