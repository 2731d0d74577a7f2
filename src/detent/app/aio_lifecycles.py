"""The async twin of: `app.lifecycles`: lifecycles for tables of your own."""

# Generated from app/lifecycles.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from detent.app.lifecycles import Lifecycles
from detent.client.list_page import ListPage
from detent.lifecycle.definition import Lifecycle
from detent.model.records import Moved, TransitionRow
from detent.views.state_counts import StateCount

__all__ = ["AsyncLifecycles"]


class AsyncLifecycles:
    """The async twin of `Lifecycles`: the same verbs, awaited."""

    def __init__(self, sync: Lifecycles) -> None:
        self._sync = sync

    def attach(self, lifecycle: Lifecycle, *, table: str, id: str = "id", state: str = "state") -> None:
        """Declare that a table of yours follows a lifecycle. `migrate` installs its guards and its record, and refuses
        a table with rows in undeclared states (`UnknownState`). `InvalidInput`.
        """
        return self._sync.attach(lifecycle, table=table, id=id, state=state)

    async def list(self, *, own: bool = False) -> ListPage[Lifecycle]:
        """List the attached lifecycles; with `own`, Detent's own before them."""
        return await asyncio.to_thread(self._sync.list, own=own)

    async def get(self, name: str) -> Lifecycle:
        """Return a lifecycle with its states and transitions: an attached one, or one of Detent's own. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, name)

    async def move(
        self,
        lifecycle: Lifecycle,
        entity_id: object,
        trigger: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Move an entity of yours by a declared trigger. `InvalidTransition`, `TransitionRace`, `NotFound`."""
        return await asyncio.to_thread(
            self._sync.move, lifecycle, entity_id, trigger, metadata=metadata, actor=actor, reason=reason
        )

    async def history(self, lifecycle: Lifecycle, entity_id: object) -> ListPage[TransitionRow]:
        """Return every transition of an entity of yours, in order, with actor and reason."""
        return await asyncio.to_thread(self._sync.history, lifecycle, entity_id)

    async def counts(self, name: str) -> ListPage[StateCount]:
        """Count the things in each state of a lifecycle: an attached one, or one of Detent's own. Of your own tables,
        100,000 rows are read at most. `NotFound`.
        """
        return await asyncio.to_thread(self._sync.counts, name)

    async def diagram(self, name: str, *, format: Literal["mermaid", "svg"] = "mermaid") -> str:
        """Draw a lifecycle: an attached one, or one of Detent's own (job, execution, batch_run, …). `NotFound`."""
        return await asyncio.to_thread(self._sync.diagram, name, format=format)
