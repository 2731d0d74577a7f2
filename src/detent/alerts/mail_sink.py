"""The mail sink: sends alerts through an SMTP server."""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import format_datetime

from detent.alerts.message_text import facts_of, headlines
from detent.alerts.sink_options import SinkOptions, host_and_port, severities_from
from detent.alerts.sinks import Fault, Outcome, failed, sent
from detent.model.alert_records import Notice, Route

__all__ = ["MailSink"]

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SUBJECT_MAX = 200


class MailSink:
    """Sends mail with TLS from the start (`tls`), after STARTTLS (`starttls`), or without encryption (`none`)."""

    summarises = True

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self.route = Route("mail", severities_from(options.mail_severity))
        self.minute_max = self.at_once_max = options.minute_max

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Send the notices. It is a success if the server accepts the mail for at least one recipient."""
        options = self._options
        try:
            with self._connect() as server:
                if options.mail_user:
                    server.login(options.mail_user, options.mail_password)
                refused = server.send_message(
                    self._message(notices), options.mail_sender, list(options.mail_recipients)
                )
        except smtplib.SMTPRecipientsRefused as error:
            return failed(options.redacted(f"all recipients were refused: {_refusals(error.recipients)}"), "message")
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            fault: Fault = "message" if error.smtp_code >= 500 else "sink"
            return failed(options.redacted(f"it answered {error.smtp_code}: {_text(error.smtp_error)}"), fault)
        except smtplib.SMTPResponseException as error:
            return failed(options.redacted(f"it answered {error.smtp_code}: {_text(error.smtp_error)}"))
        except (OSError, smtplib.SMTPException, ValueError) as error:
            # The exceptions of smtplib are OSErrors too. All but this one mean that the server refuses the mail.
            is_gone = isinstance(error, smtplib.SMTPServerDisconnected) or not isinstance(error, smtplib.SMTPException)
            what = "no answer" if is_gone else "the server refuses the mail"
            return failed(options.redacted(f"{what}: {error or type(error).__name__}"))
        some = f", but not for {_refusals(refused)}" if refused else ""
        return sent(options.redacted(f"accepted for {len(options.mail_recipients) - len(refused)}{some}"))

    def _connect(self) -> smtplib.SMTP:
        options = self._options
        host, port = host_and_port(options.mail_server, _PORTS[options.mail_security])
        hostname = socket.gethostname()
        if options.mail_security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, hostname, timeout=options.timeout, context=context)
        server = smtplib.SMTP(host, port, hostname, timeout=options.timeout)
        if options.mail_security == "starttls":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server

    def _message(self, notices: Sequence[Notice]) -> EmailMessage:
        options = self._options
        head, lines = headlines(notices)
        message = EmailMessage()
        message["From"] = options.mail_sender
        message["To"] = ", ".join(options.mail_recipients)
        message["Subject"] = f"[{' '.join(options.source.split())}] {head}"[:_SUBJECT_MAX]
        message["Date"] = format_datetime(notices[-1].at)
        message["Message-ID"] = self._id("&".join(str(one.n) for one in notices), notices[-1])
        if len(notices) == 1 and notices[0].kind != "firing":
            message["References"] = self._id(notices[0].alert_id, notices[0])
        message["Auto-Submitted"] = "auto-generated"
        facts = [f"{name}: {value}" for name, value in facts_of(notices[0]).items()] if not lines else []
        at = notices[0].since.strftime("%Y-%m-%d %H:%M:%SZ")
        message.set_content("\n".join([head, "", *lines, *facts, "", f"since {at}, sent by {options.source}", ""]))
        return message

    def _id(self, what: str, notice: Notice) -> str:
        """Return a message id: the same for the same message, so a mail that arrives twice is recognised."""
        whole = f"{self._options.source}/{what}/{notice.episode}/{notice.since.isoformat()}"
        return f"<{hashlib.sha256(whole.encode()).hexdigest()[:32]}@detent>"


def _refusals(recipients: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{who}: {code} {_text(why)}" for who, (code, why) in recipients.items())


def _text(words: bytes | str) -> str:
    return " ".join((words.decode("utf-8", "replace") if isinstance(words, bytes) else words).split())
