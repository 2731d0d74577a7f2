"""Settings of a small shop: SQLite, or PostgreSQL if SHOP_DATABASE names one."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

PLACE = Path(os.environ.get("SHOP_PLACE", "."))
"""The folder of the database file."""
SECRET_KEY = "only for this example"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "detent.integrations.django",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

if "SHOP_DATABASE" in os.environ:
    parts = urlsplit(os.environ["SHOP_DATABASE"])  # postgresql://user:password@host:port/name
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.strip("/"),
            "USER": parts.username,
            "PASSWORD": parts.password,
            "HOST": parts.hostname,
            "PORT": parts.port,
        }
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": PLACE / "shop.sqlite3",
            # Write transactions wait for each other instead of failing at the first write.
            "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            "TEST": {"NAME": PLACE / "test.sqlite3"},  # by default it is in memory, where no worker could see it
        }
    }

TASKS = {
    "default": {
        "BACKEND": "detent.integrations.django.backend.DetentBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"retry": 2},
    }
}
DETENT = {"console": "/detent/"}
