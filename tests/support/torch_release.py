"""Which release of torch this is, for tests of what torch itself does: that changes from one to the next."""

import torch


def since_release(release: str | None) -> bool:
    """Return whether torch is of a release such as "2.15", or newer; never, if no release is named."""
    return release is not None and _numbers(torch.__version__) >= _numbers(release)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])
