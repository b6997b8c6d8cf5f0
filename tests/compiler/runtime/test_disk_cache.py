"""The cache gives back what was kept, and a damaged or forbidden folder is a reason, never an error."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

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


def test_folders_and_files_are_for_their_owner_alone(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    assert path is not None
    for folder in (cache.root, cache.root / "v1", path.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_that_others_could_write_to_is_closed_to_them(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    cache.root.chmod(0o777)
    assert cache.find("abcd") == path
    assert stat.S_IMODE(cache.root.stat().st_mode) == 0o700


def test_a_file_that_others_can_write_to_is_not_found(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    assert path is not None
    path.chmod(0o666)
    assert cache.find("abcd") is None


def test_what_another_user_owns_is_refused_in_one_line(
    tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    real = os.lstat

    def planted(file: Path, **named: object) -> object:
        status = real(file)
        if Path(file) != path:
            return status
        return SimpleNamespace(st_mode=status.st_mode, st_uid=os.geteuid() + 1)

    monkeypatch.setattr(Path, "lstat", planted)
    assert cache.find("abcd") is None
    monkeypatch.undo()

    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 7)
    if tmp_path.stat().st_uid != 0:
        assert cache.find("abcd") is None
        place, reason = cache.keep("abcd", built)
        assert place is None
        assert "belongs to another user" in reason
        assert "\n" not in reason


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_in_the_cache_does_not_hang(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    assert path is not None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.find("abcd") is None
    assert cache.keep("abcd", built) == (path, "")
    assert cache.find("abcd") == path


def test_a_link_to_a_library_elsewhere_is_not_found(tmp_path: Path, built: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    path, _ = cache.keep("abcd", built)
    assert path is not None
    path.unlink()
    path.symlink_to(built)
    assert cache.find("abcd") is None
