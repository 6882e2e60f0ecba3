"""Outside references: where they are, and how to get them."""

from twinenv.references.store import (
    MissingReferenceError,
    install,
    locate,
    names,
    status,
    use,
)

__all__ = ["MissingReferenceError", "install", "locate", "names", "status", "use"]
