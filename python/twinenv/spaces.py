"""The space classes of gymnax, imported when first used.

gymnax pulls in matplotlib, seaborn and pandas, so nothing here imports it before a space is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnax.environments.spaces import Box, Dict, Discrete, Space, Tuple

__all__ = ["Box", "Dict", "Discrete", "Space", "Tuple"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {__all__}")
    from gymnax.environments import spaces

    return getattr(spaces, name)


def __dir__() -> list[str]:
    return sorted(__all__)
