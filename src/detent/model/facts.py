"""What a database says about itself."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Facts"]


class Facts(Struct, frozen=True, kw_only=True):
    """For whoever looks after it. A caution is a sentence about what is not as it should be; None where all is well.

    `schema` is the number of the newest step it has taken, 0 where it has no record; `missing` the steps still to take;
    `functions` those in it that are not those of this version, though it has taken all steps.
    """

    kind: str
    version: str
    version_caution: str | None
    schema: int
    missing: tuple[str, ...]
    functions: tuple[str, ...] = ()
    durability: dict[str, str]
    durability_caution: str | None
