"""What programs have declared in code."""

from __future__ import annotations

from detent.model.clock import from_micros
from detent.model.service_records import DeclarationRow, Declared, DeclaredKind
from detent.store.sqlite.verb_base import VerbBase

__all__ = ["DeclarationVerbs"]

_OF_NAME = "SELECT n, fingerprint FROM detent_declaration WHERE kind = ? AND name = ? ORDER BY n"
_NEW = "INSERT INTO detent_declaration (kind, name, n, fingerprint, at) VALUES (?, ?, ?, ?, ?)"
_FORGET = "DELETE FROM detent_declaration WHERE kind = ? AND name = ? AND n <= ?"
_KEPT = 50
_LIST = """
SELECT d.kind, d.name, d.fingerprint, d.at FROM detent_declaration d
 WHERE d.fingerprint <> ''
   AND d.n = (SELECT max(o.n) FROM detent_declaration o WHERE o.kind = d.kind AND o.name = d.name)
 ORDER BY d.kind, d.name
"""


class DeclarationVerbs(VerbBase):
    """`declaration_put` and `declaration_list`."""

    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        """One row for each change."""
        known = self._db.rows(_OF_NAME, (kind, name))
        number, newest = known[-1] if known else (0, "")
        if newest == fingerprint:
            return "same"
        if not again and any(row[1] == fingerprint for row in known):
            return "replaced"
        self._db.change(_NEW, (kind, name, number + 1, fingerprint, self._now()))
        self._db.change(_FORGET, (kind, name, number + 1 - _KEPT))
        return "new"

    def declaration_list(self) -> list[DeclarationRow]:
        """By kind and name."""
        return [
            DeclarationRow(kind=kind, name=name, fingerprint=found, at=from_micros(at))
            for kind, name, found, at in self._db.rows(_LIST)
        ]
