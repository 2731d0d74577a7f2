"""`app.lifecycles`: lifecycles for tables of your own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from detent.app.registry import Registry
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage
from detent.declare.enqueue import encode_metadata
from detent.errors import InvalidInput, NotFound
from detent.lifecycle.definition import Lifecycle
from detent.lifecycle.library import LIBRARY
from detent.model import json_codec
from detent.model.records import Moved, TransitionRow
from detent.store.entities.rules import check_name
from detent.views.state_counts import StateCount, count_own, count_rows

__all__ = ["Lifecycles"]

_PLAIN_NAME = re.compile(r"([A-Za-z_]\w*\.)?[A-Za-z_]\w*", re.ASCII)
_ENTITY_ID_MAX = 200


class Lifecycles:
    """The lifecycles that the code attaches to its tables, and Detent's own."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry

    def attach(self, lifecycle: Lifecycle, *, table: str, id: str = "id", state: str = "state") -> None:
        """Declare that a table of yours follows a lifecycle. `migrate` installs its guards and its record, and refuses
        a table with rows in undeclared states (`UnknownState`). `InvalidInput`."""
        attached = self._registry.attached
        if lifecycle.name in attached:
            raise InvalidInput("lifecycle", f"{lifecycle.name!r} attached twice", "one table for each lifecycle")
        check_name(lifecycle)
        for field, name in (("table", table), ("id", id), ("state", state)):
            if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or (field != "table" and "." in name):
                raise InvalidInput(field, repr(name)[:80], "a plain name: letters, digits and underscores")
        attached[lifecycle.name] = (lifecycle, table, id, state)

    def list(self, *, own: bool = False) -> ListPage[Lifecycle]:
        """List the attached lifecycles; with `own`, Detent's own before them."""
        attached = [found[0] for found in self._registry.attached.values()]
        return ListPage([*LIBRARY.values(), *attached] if own else attached)

    def get(self, name: str) -> Lifecycle:
        """Return a lifecycle with its states and transitions: an attached one, or one of Detent's own. `NotFound`."""
        known = LIBRARY | {name: found[0] for name, found in self._registry.attached.items()}
        if name not in known:
            raise NotFound("lifecycle", f"{name!r}; there are: {', '.join(known)}")
        return known[name]

    def move(
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
        attached = self._registry.attached
        if lifecycle.name not in attached:
            allowed = ", ".join(attached) or "none yet; app.lifecycles.attach attaches one"
            raise InvalidInput("lifecycle", f"{lifecycle.name!r}, which is not attached", allowed)
        if trigger not in lifecycle.triggers:
            raise InvalidInput("trigger", repr(trigger), ", ".join(lifecycle.triggers))
        who, why = actor_and_reason(actor, reason, self._engine.settings)
        text = encode_metadata(metadata, self._engine.settings)
        _, table, id_column, state_column = attached[lifecycle.name]
        move = self._engine.store.entity_move
        return unwrap(move(lifecycle, table, id_column, state_column, _entity_id(entity_id), trigger, who, why, text))

    def history(self, lifecycle: Lifecycle, entity_id: object) -> ListPage[TransitionRow]:
        """Return every transition of an entity of yours, in order, with actor and reason."""
        return ListPage(self._engine.store.transitions(lifecycle.name, _entity_id(entity_id)))

    def counts(self, name: str) -> ListPage[StateCount]:
        """Count the things in each state of a lifecycle: an attached one, or one of Detent's own. Of your own tables,
        100,000 rows are read at most. `NotFound`."""
        lifecycle = self.get(name)
        if name in self._registry.attached:
            _, table, _, state_column = self._registry.attached[name]
            return ListPage(count_rows(self._engine.store, lifecycle, table, state_column))
        return ListPage(count_own(self._engine.store, lifecycle))

    def diagram(self, name: str, *, format: Literal["mermaid", "svg"] = "mermaid") -> str:
        """Draw a lifecycle: an attached one, or one of Detent's own (job, execution, batch_run, …). `NotFound`."""
        from detent.lifecycle import diagrams

        found = self.get(name)
        return diagrams.svg(found) if format == "svg" else diagrams.mermaid(found)


def _entity_id(value: object) -> str:
    return json_codec.text(str(value), field="entity id", bytes_max=_ENTITY_ID_MAX)
