"""To whom alerts are told: what a worker is given, out of the settings."""

from __future__ import annotations

from msgspec import Struct

from detent.model.alert_records import SEVERITIES, Severity

__all__ = ["SinkOptions", "host_and_port", "severities_from"]

_REMOVED = "***"


class SinkOptions(Struct, frozen=True, kw_only=True):
    """Sinks that have no address are not there; the log always is. `source` says which Detent speaks.

    Holds secrets: it goes through pipes, never onto a command line, and `redacted` takes them out of whatever is said.
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
        """The text without the secrets."""
        path = self.webhook_url.partition("://")[2].partition("/")[2]
        for secret in (self.webhook_url, path, self.pager_key, self.mail_password):
            if len(secret) > 3:
                text = text.replace(secret, _REMOVED)
        return text

    def __repr__(self) -> str:
        return f"SinkOptions(source={self.source!r}, …)"


def severities_from(least: Severity) -> tuple[Severity, ...]:
    """That severity and those above it."""
    return SEVERITIES[SEVERITIES.index(least) :]


def host_and_port(server: str, otherwise: int) -> tuple[str, int]:
    """`mail.example.org`, `mail.example.org:25`, `::1` or `[::1]:25`, with the port that is meant where none is said.
    ValueError for what is none of these."""
    host, colon, port = server.rpartition(":")
    is_bare_address = ":" in host and not host.startswith("[")
    if not colon or is_bare_address or server.endswith("]"):
        host, port = server, str(otherwise)
    host = host.removeprefix("[").removesuffix("]")
    if not host or any(letter.isspace() for letter in host) or not 1 <= int(port) <= 65_535:
        raise ValueError(server)
    return host, int(port)
