"""What a profile is asked to do, checked.

May import the errors. Tests: ``tests/test_dependence.py``, ``tests/test_control.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scr_critplugin.errors import ProfileError

CHOICES = {
    "control": ("sink", "report"),
    "validate": ("poison", None),
    "engine": ("dependence", "gradient", "perturbation"),
    "mask": ("structure", "gradient"),
}


@dataclass(frozen=True)
class Options:
    """The options of `profile`, under the names that they have there.

    Raises
    ------
    ProfileError
        One is none of its choices, or two do not go together; `key` names it.
    """

    at: Any
    steps: int | None
    control: str
    validate: str | None
    engine: str
    mask: str
    tiles: int | None
    seed: int

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                expected = " or ".join(map(repr, choices))
                raise ProfileError(f"{name} is {getattr(self, name)!r}; expected {expected}", key=name)
        if self.steps is not None and self.steps < 1:
            raise ProfileError(
                f"steps is {self.steps}; expected at least 1, or None for a run of any length", key="steps"
            )
        if self.tiles is not None and self.tiles < 1:
            raise ProfileError(
                f"tiles is {self.tiles}; expected at least 1, or None to sweep everything", key="tiles"
            )
        if self.mask == "gradient" and self.engine != "gradient":
            raise ProfileError(
                f"mask is 'gradient' with engine {self.engine!r}; expected the engine of that name",
                key="mask",
            )

    @property
    def validates(self) -> bool:
        """Whether the map is checked by poison."""
        return self.validate == "poison"

    def require_fit_for(self, ranks: int) -> None:
        """Raise ProfileError for what does not work on several `ranks`."""
        if ranks > 1 and self.tiles is not None:
            raise ProfileError(
                "tiles are not followed across ranks; sweep everything (tiles=None)", key="tiles"
            )
