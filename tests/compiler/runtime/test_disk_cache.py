"""The cache gives back what was kept, and a damaged or forbidden folder is a reason, never an error."""

import os
from pathlib import Path

import pytest

from plumbline.compiler.runtime.disk_cache import DiskCache, key_of


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "built.so"
    path.write_bytes(b"machine code")
    return path


def test_what_is_kept_is_found(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    assert cache.find("abcd") is None
    path, reason = cache.keep("abcd", built)
    assert reason == ""
    assert path == cache.find("abcd")
    assert path is not None
    assert path.read_bytes() == b"machine code"
    assert sorted(each.name for each in path.parent.iterdir()) == ["abcd.sha256", "abcd.so"]  # nothing half-written


@pytest.mark.parametrize("damage", [b"", b"machine cod", b"machine codf"])
def test_a_damaged_entry_is_not_found_and_can_be_replaced(tmp_path: Path, built: Path, damage: bytes) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.keep("abcd", built)
    cache.path("abcd").write_bytes(damage)
    assert cache.find("abcd") is None
    cache.keep("abcd", built)
    assert cache.find("abcd") is not None


def test_an_entry_without_its_checksum_is_not_found(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.keep("abcd", built)
    cache.path("abcd").with_suffix(".sha256").unlink()
    assert cache.find("abcd") is None


def test_a_folder_that_cannot_be_made_is_a_reason(tmp_path: Path, built: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    path, reason = DiskCache(tmp_path / "cache").keep("abcd", built)
    assert path is None
    assert "cache" in reason
    assert "\n" not in reason


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the test of a full disk needs /dev/full")
def test_a_full_disk_is_a_reason(tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fdopen

    def full(handle: int, mode: str) -> object:
        os.close(handle)
        return real(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr("plumbline.compiler.runtime.disk_cache.os.fdopen", full)
    path, reason = DiskCache(tmp_path / "cache").keep("abcd", built)
    assert path is None
    assert "No space left" in reason
    monkeypatch.undo()
    assert DiskCache(tmp_path / "cache").find("abcd") is None
    assert [each for each in (tmp_path / "cache").rglob("*") if each.is_file()] == []


def test_a_key_separates_its_parts() -> None:
    assert key_of("a", "bc") != key_of("ab", "c")
    assert key_of("a", "bc") == key_of("a", "bc")
