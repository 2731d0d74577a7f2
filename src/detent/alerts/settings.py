"""From the settings to the sinks of alerts."""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import urlsplit

from detent.alerts.options import SinkOptions, host_and_port
from detent.declare.settings import Settings
from detent.errors import InvalidSetting

__all__ = ["sink_options"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def sink_options(settings: Settings, source: str) -> SinkOptions:
    """Return where alerts are sent, by the settings. `InvalidSetting` for a wrong one, without repeating secrets."""
    for field in ("alert_webhook_url", "alert_pager_url"):
        url = getattr(settings, field)
        if url and not _is_web(url):
            raise InvalidSetting(field, "something else", "a URL that begins with https:// or http://")
    recipients = tuple(part.strip() for part in settings.alert_mail_recipients.split(",") if part.strip())
    if (recipients or settings.alert_mail_sender) and not settings.alert_mail_server:
        raise InvalidSetting("alert_mail_server", "nothing, though there is somebody to write to", "host or host:port")
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
