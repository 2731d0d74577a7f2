"""The options of alert sinks, and how they follow from the settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from detent.errors import InvalidSetting
from detent.model.alert_records import SEVERITIES, Severity

if TYPE_CHECKING:
    from detent.declare.settings import Settings

__all__ = ["SinkOptions", "host_and_port", "severities_from", "sink_options"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REMOVED = "***"


class SinkOptions(Struct, frozen=True, kw_only=True):
    """Where alerts are sent. A sink without an address is not used; the log always is. `source` names this database.

    It holds secrets: it is passed through pipes and never on a command line, and `redacted` removes them from messages.
    """

    source: str = "detent"
    webhook_url: str = ""
    webhook_severity: Severity = "warning"
    pager_key: str = ""
    pager_url: str = "https://events.pagerduty.com/v2/enqueue"
    pager_severity: Severity = "critical"
    mail_server: str = ""
    mail_security: str = "starttls"
    mail_user: str = ""
    mail_password: str = ""
    mail_sender: str = ""
    mail_recipients: tuple[str, ...] = ()
    mail_severity: Severity = "warning"
    minute_max: int = 10
    remind_hours: float = 4.0
    timeout: float = 10.0

    def redacted(self, text: str) -> str:
        """Return the text without the secrets."""
        path = self.webhook_url.partition("://")[2].partition("/")[2]
        for secret in (self.webhook_url, path, self.pager_key, self.mail_password):
            if len(secret) > 3:
                text = text.replace(secret, _REMOVED)
        return text

    def __repr__(self) -> str:
        return f"SinkOptions(source={self.source!r}, …)"


def severities_from(least: Severity) -> tuple[Severity, ...]:
    """Return that severity and those above it, the mildest first."""
    return SEVERITIES[SEVERITIES.index(least) :]


def host_and_port(server: str, default: int) -> tuple[str, int]:
    """Split `mail.example.org`, `mail.example.org:25`, `::1` or `[::1]:25` into host and port. ValueError for other
    texts."""
    host, colon, port = server.rpartition(":")
    is_bare_address = ":" in host and not host.startswith("[")
    if not colon or is_bare_address or server.endswith("]"):
        host, port = server, str(default)
    host = host.removeprefix("[").removesuffix("]")
    if not host or any(letter.isspace() for letter in host) or not 1 <= int(port) <= 65_535:
        raise ValueError(server)
    return host, int(port)


def sink_options(settings: Settings, source: str) -> SinkOptions:
    """Return where alerts are sent, by the settings. `InvalidSetting` for a wrong one, without repeating secrets."""
    for field in ("alert_webhook_url", "alert_pager_url"):
        url = getattr(settings, field)
        if url and not _is_web(url):
            raise InvalidSetting(
                field, "a text that is not a web address", "a URL that begins with https:// or http://"
            )
    recipients = tuple(part.strip() for part in settings.alert_mail_recipients.split(",") if part.strip())
    if (recipients or settings.alert_mail_sender) and not settings.alert_mail_server:
        raise InvalidSetting(
            "alert_mail_server", "no server, although a sender or a recipient is set", "host or host:port"
        )
    if settings.alert_mail_server:
        for field, addresses in (
            ("alert_mail_sender", (settings.alert_mail_sender,)),
            ("alert_mail_recipients", recipients or ("",)),
        ):
            for address in addresses:
                if not _is_mailbox(address):
                    raise InvalidSetting(field, repr(address), "an address, such as ops@example.org")
        try:
            host, _ = host_and_port(settings.alert_mail_server, 25)
        except ValueError:
            found = repr(settings.alert_mail_server)[:80]
            raise InvalidSetting("alert_mail_server", found, "host or host:port") from None
        if settings.alert_mail_password and settings.alert_mail_security == "none" and host not in _LOOPBACK:
            raise InvalidSetting("alert_mail_security", "none, with a password", "starttls or tls")
    fields = {
        name.removeprefix("alert_"): value
        for name, value in asdict(settings).items()
        if name.startswith("alert_") and name != "alert_mail_recipients"
    }
    return SinkOptions(source=source, mail_recipients=recipients, **fields)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = url.isascii() and not any(letter.isspace() for letter in url)
    return is_plain and parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_mailbox(address: str) -> bool:
    from email.utils import parseaddr

    found = parseaddr(address)[1]
    name, at, domain = found.rpartition("@")
    return bool(name and at and domain) and address.isascii() and not any(letter in address for letter in "\r\n")
