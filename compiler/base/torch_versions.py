"""The releases of torch that plumbline was tested with; read where torch itself may not import."""

TESTED_TORCH = ("2.11", "2.13", "2.15")
"""Releases under which the tests were run, oldest first."""


def is_tested(version: str) -> bool:
    """Return whether a version of torch, such as "2.13.0+cpu", belongs to a release that was tested."""
    return ".".join(version.split(".")[:2]) in TESTED_TORCH


def precedes(version: str, release: str) -> bool:
    """Return whether a version of torch, such as "2.11.0+cpu", is older than a release, such as "2.13"."""
    return _numbers(version) < _numbers(release)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])
