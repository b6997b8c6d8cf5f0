"""The peak of a piece of work is its own: not what was held before, and not what an earlier piece took."""

import pytest

from plumbline.pytest_plugin.recording.peak_memory import PeakMemory

MEGABYTE = 1 << 20


def held(megabytes):
    data = bytearray(megabytes * MEGABYTE)
    data[:: 1 << 12] = b"x" * len(data[:: 1 << 12])  # each page is touched
    return data


@pytest.mark.parametrize("megabytes", [200, 40])
def test_what_is_let_go_again_counts(megabytes):
    before = held(60)
    watch = PeakMemory()
    held(megabytes)
    assert 0.95 * megabytes * MEGABYTE < watch.bytes() < (megabytes + 15) * MEGABYTE
    assert len(before) == 60 * MEGABYTE


def test_nothing_is_known_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr("plumbline.pytest_plugin.recording.peak_memory._STATUS", tmp_path / "none")
    watch = PeakMemory()
    held(20)
    assert watch.bytes() == 0
