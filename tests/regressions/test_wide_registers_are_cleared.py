"""Kernels left the upper halves of vector registers set; MKL's own code then took two to three times as long."""

import subprocess
from pathlib import Path

import pytest

from plumbline.compiler.runtime.cpu_features import cpu_features
from plumbline.compiler.runtime.toolchain import find_toolchain

pytestmark = pytest.mark.cc
KERNEL = """typedef float wide __attribute__((vector_size(32)));
void kernel(float *a, const float *b) { *(wide *)a += *(const wide *)b; }
"""


def test_a_kernel_ends_with_vzeroupper(tmp_path: Path) -> None:
    features = cpu_features()
    if features.vector_bytes < 32 or not features.has_f16c:
        pytest.skip("this CPU has no registers of 256 bits, or is not of the x86 family")
    toolchain = find_toolchain("", features, None)
    source, text = tmp_path / "kernel.c", tmp_path / "kernel.s"
    source.write_text(KERNEL)
    subprocess.run([*toolchain.command, *toolchain.flags, "-S", str(source), "-o", str(text)], check=True, timeout=60)
    assert "vzeroupper" in text.read_text()
