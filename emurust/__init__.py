"""The Game Boy side of twinenv: the parts of the Rust emulator core that Python can reach.

The compiled module `emurust._core` is loaded when one of its names is first used, so that
importing this package works, and costs nothing, where the extension has not been built.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emurust._core import CartridgeError, CartridgeHeader

__all__ = ["CartridgeError", "CartridgeHeader"]


def __getattr__(name: str) -> Any:
    """Loads the compiled module when one of its names is asked for.

    Raises:
        AttributeError: if the package has no such name.
        ImportError: if the extension is not built for this interpreter.
    """
    if name not in __all__:
        raise AttributeError(
            f"module 'emurust' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    try:
        core = import_module("emurust._core")
    except ImportError as error:
        raise ImportError(
            f"emurust.{name} needs the compiled extension emurust._core, which could not be "
            f"loaded ({error}); with a Rust toolchain installed, run `pip install .` or "
            "`maturin develop` in the source folder",
            name="emurust._core",
        ) from error
    return getattr(core, name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*globals(), *__all__])
