"""Kernels are built by other processes, once each, and kept on disk; their machine code obeys the rules."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from plumbline.compiler.base.errors import BuildError
from plumbline.compiler.base.events import KernelBuilt, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton.cuda_segments import request_of
from plumbline.compiler.codegen.triton.kernel_checks import faults_of
from plumbline.compiler.runtime import triton_build
from plumbline.compiler.runtime.triton_build import build_kernels, why_no_triton
from support.triton_kernels import kernels_of

needs_triton = pytest.mark.skipif(bool(why_no_triton()), reason=f"no kernels can be built: {why_no_triton()}")


@needs_triton
def test_kernels_are_built_checked_and_found_again(tmp_path: Path) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1), (y.t() / 3).contiguous()

    kernels = kernels_of(program, torch.empty(512, 256), torch.empty(128, 64))
    requests = [request_of(kernel, capability) for kernel in kernels for capability in (80, 90)]
    options = Options(cache_directory=str(tmp_path))
    with recording() as events:
        built = build_kernels([*requests, requests[0]], options)
        again = build_kernels(requests, options)
    assert [(event.kernels, event.cached) for event in events if isinstance(event, KernelBuilt)] == [
        (4, False),
        (4, True),
    ]
    assert [each.cubin for each in built] == [each.cubin for each in [*again, again[0]]]
    for request, each in zip(requests, built, strict=False):
        assert list(faults_of(request, each)) == []
        assert each.cubin.startswith(b"\x7fELF")
        assert 0 < each.registers <= 128
    assert "ld.global.v4" in built[2].ptx + built[3].ptx, "aligned rows are read 16 bytes at a time"
    planted = replace(built[0], ptx=built[0].ptx.replace("div.rn.f32", "div.full.f32"), spills=8)
    assert list(faults_of(requests[0], planted)) == ["8 bytes of registers are spilled", "an approximate division"]


@needs_triton
@pytest.mark.parametrize("capability", [100, "gfx942"])
def test_kernels_are_built_for_newer_and_for_other_gpus(capability: int | str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1), (x.t() / 3).contiguous(), x.erf().argmax(0), x.cumsum(1)

    kernels = kernels_of(program, torch.empty(512, 256))
    requests = [request_of(kernel, capability) for kernel in kernels]
    assert len({request.key for request in requests}) == len(kernels) > 1
    for request, built in zip(requests, build_kernels(requests, Options()), strict=True):
        assert list(faults_of(request, built)) == []
        assert built.cubin.startswith(b"\x7fELF")
        assert built.registers > 0
        assert ("amdgcn" in built.ptx) is isinstance(capability, str)
    planted = replace(built, spills=8)
    assert list(faults_of(request, planted)) == ["8 bytes of registers are spilled"]


@needs_triton
def test_a_place_out_of_range_is_an_assertion_and_nothing_else_is() -> None:
    (looked_up,) = kernels_of(lambda x, i: x[i] * 2, torch.empty(50, 256), torch.zeros(64, dtype=torch.int64))
    (whole,) = kernels_of(lambda i: i * 3 + 1, torch.empty(4096, dtype=torch.int64))
    built = build_kernels([request_of(each, 90) for each in (looked_up, whole)], Options())
    assert ["__assertfail" in each.ptx for each in built] == [True, False], "whole numbers may overflow"
    for kernel, each in zip((looked_up, whole), built, strict=True):
        assert list(faults_of(request_of(kernel, 90), each)) == []


@needs_triton
def test_a_text_that_triton_refuses_is_a_build_error() -> None:
    (kernel,) = kernels_of(lambda x: x + 1, torch.empty(100))
    broken = replace(request_of(kernel, 90), text=kernel.module.replace("t2", "unheard_of", 1))
    with pytest.raises(BuildError, match="Triton refuses a kernel"):
        build_kernels([broken], Options(disk_cache=False))


def test_without_triton_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match="triton is not installed"):
        build_kernels([], Options())
