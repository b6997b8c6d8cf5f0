"""The peak of a piece of work is its own: not what was held before, and not what an earlier piece took."""

import subprocess
import sys

import pytest

from plumbline.pytest_plugin.recording.peak_memory import PeakMemory

MEGABYTE = 1 << 20
# In a process of its own: of one that has run for long, the system takes memory away meanwhile.
SCRIPT = """
from plumbline.pytest_plugin.recording.peak_memory import PeakMemory

def held(megabytes):
    data = bytearray(megabytes << 20)
    data[:: 1 << 12] = b"x" * len(data[:: 1 << 12])  # each page is touched
    return data

before = held(60)
watch = PeakMemory()
held({megabytes})
print(watch.bytes(), len(before))
"""


@pytest.mark.parametrize("megabytes", [200, 40])
def test_what_is_let_go_again_counts(megabytes):
    script = SCRIPT.replace("{megabytes}", str(megabytes))
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    peak, before = map(int, told.split())
    assert 0.95 * megabytes * MEGABYTE < peak < (megabytes + 15) * MEGABYTE
    assert before == 60 * MEGABYTE


def test_nothing_is_known_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr("plumbline.pytest_plugin.recording.peak_memory._STATUS", tmp_path / "none")
    watch = PeakMemory()
    bytes(20 * MEGABYTE)
    assert watch.bytes() == 0
