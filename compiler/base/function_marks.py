"""Marks that functions carry as attributes: whose a mark is, as `functools.wraps` copies all attributes to wrappers."""


def own_mark(function: object, name: str) -> object:
    """Return the mark that was put on this very object, None if there is none.

    A wrapper around a marked function has a copy of the mark, and the function itself as `__wrapped__`; what was asked
    for the function was not asked for the wrapper.
    """
    namespace = getattr(function, "__dict__", {})
    mark = namespace.get(name)
    wrapped = namespace.get("__wrapped__")
    copied = wrapped is not None and getattr(wrapped, "__dict__", {}).get(name) is mark
    return None if copied else mark
