"""The form of all JSON that hdmm reads back: no unknown keys, no conversions, nothing that changes afterwards."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An object of a file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
