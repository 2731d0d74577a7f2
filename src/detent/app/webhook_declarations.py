"""Declaring webhooks: `@app.webhook(...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from detent.app.registry import Registry
from detent.errors import InvalidInput
from detent.webhooks.incoming import IncomingWebhook, WorkOf
from detent.webhooks.shared_secret import Secret

__all__ = ["WebhookDeclarations"]


class WebhookDeclarations:
    """What an application declares about webhooks."""

    _registry: Registry

    def webhook(
        self,
        name: str,
        /,
        *,
        secret: Secret | Sequence[Secret],
        verify: str = "standard",
        size_max: int | None = None,
        key_ttl: float | None = None,
        tenant: str = "",
    ) -> Callable[[WorkOf], IncomingWebhook]:
        """Declare an incoming webhook: `@app.webhook("github-push", secret="env:GITHUB_SECRET", verify="github")` above
        a function that takes a `WebhookDelivery` and returns calls to enqueue: one, a list, or None. The function may
        also queue ops runs and return them. `detent server` takes deliveries at `POST /hooks/github-push`.

        - `secret`: a text, bytes, `env:NAME` for an environment variable, or a function that returns the secret; it is
          read once, when the server starts. A list accepts each of them, while a secret is rotated. If the variable is
          not set, the webhook is off.
        - `verify`: how the provider signs: github, gitlab, stripe, slack, shopify or standard (Standard Webhooks).
        - `size_max`: maximum size of a body in bytes; default 1 MiB, at most 25 MiB.
        - `key_ttl`: seconds for which the id of a delivery is kept; default: for ever. A delivery that is sent again
          later than that creates new jobs.
        - `tenant`: tenant of the jobs.

        The id of a delivery is the key of its jobs, so a delivery that is sent again creates nothing. `InvalidInput` if
        the name is taken, `InvalidSetting` for an empty secret and an option out of range.
        """

        def declare(function: WorkOf) -> IncomingWebhook:
            declared = IncomingWebhook(
                name,
                function,
                verify=verify,
                secret=secret,
                size_max=size_max,
                key_ttl=key_ttl,
                tenant=tenant,
                engine=self._registry.engine_ref,
            )
            if name in self._registry.webhooks:
                raise InvalidInput("webhook", f"the name {name!r} twice", "one webhook for each name")
            self._registry.webhooks[name] = declared
            return declared

        return declare

    @property
    def incoming_webhooks(self) -> Mapping[str, IncomingWebhook]:
        """Declared incoming webhooks by name."""
        return dict(self._registry.webhooks)
