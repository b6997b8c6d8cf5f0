"""The launches of a program, recorded by a library that stands in for the CUDA driver."""

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch

from plumbline.compiler.base.errors import BuildError, Unsupported
from plumbline.compiler.base.events import FellBack, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton import cuda_segments as module
from plumbline.compiler.codegen.triton.cuda_segments import Gpu, cuda_segments
from plumbline.compiler.codegen.triton.launch_table import write_launch_table
from plumbline.compiler.codegen.triton.tiles import DeviceFacts
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.runtime.c_build import toolchain_for
from plumbline.compiler.runtime.cuda_driver import CudaDriver, LoadedKernel
from plumbline.compiler.runtime.kernel_launches import PlannedLaunch, launcher_of
from plumbline.compiler.runtime.triton_build import BuiltKernel, KernelRequest
from plumbline.compiler.schedule.execution_plan import plan_execution
from plumbline.compiler.schedule.schedule import schedule
from support.dynamic_levels import DynamicProgram

pytestmark = pytest.mark.cc
STAND_IN = r"""
typedef unsigned long long word;
word launches[64][6]; int count, modules, largest_shared;
int cuModuleLoadData(void **m, const void *image) { *m = (void *)(word)((const char *)image)[0]; modules++; return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = m; return name[0] == 'k' ? 0 : 500; }
int cuFuncSetAttribute(void *f, int attribute, int value) { largest_shared = attribute == 8 ? value : -1; return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **values, void **extra) {
  if (!gx || gy != 1 || gz != 1 || by != 1 || bz != 1 || extra) return 1;
  word row[6] = {(word)f, gx, bx, (word)stream, *(word *)values[0], *(word *)values[1]};
  for (int k = 0; k < 6; k++) launches[count][k] = row[k];
  count++; return 0;
}
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(STAND_IN)
    command = [*toolchain_for(Options()).command, "-shared", "-fPIC", str(folder / "driver.c"), "-o"]
    subprocess.run([*command, str(folder / "driver.so")], check=True)
    return str(folder / "driver.so")


def built(requests: list[KernelRequest], options: Options) -> list[BuiltKernel]:
    """Stand for Triton: the code of kernel n is the byte n + 1, or n + 101 where nothing is known of addresses."""
    del options
    return [
        BuiltKernel(bytes([number + (1 if request.aligned else 101)]), "", "kernel", 50_000 if number else 0, 0, 32, 0)
        for number, request in enumerate(requests)
    ]


def test_the_table_is_launched_in_order_on_the_current_stream(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "build_kernels", built)

    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.softmax(-1), (y.t() * 2).contiguous(), (x + 1).softmax(-1)

    inputs = (torch.rand(64, 64), torch.rand(48, 80))
    plan = plan_execution(schedule(lower_graph(trace(program, inputs)), Options()))
    table = write_launch_table(plan, DeviceFacts())
    gpu = Gpu(torch.device("cpu"), 90, CudaDriver(stand_in), stream=lambda device: 4711)
    (segment,) = cuda_segments(plan, table, gpu, Options())
    places = [4096 * (number + 1) for number in range(len(plan.segments[0].parameters))]
    assert segment(*places) == 0
    recorded = launches_of(stand_in)
    wanted = [
        (each.kernel + 1, each.programs, 32 * table.kernels[each.kernel].tiling.warps, 4711)
        for each in table.segments[0]
    ]
    assert [row[:4] for row in recorded] == wanted
    assert [row[4:] for row in recorded] == [
        tuple(places[slot] for slot in each.slots[:2]) for each in table.segments[0]
    ]
    library = ctypes.CDLL(stand_in)
    assert ctypes.c_int.in_dll(library, "largest_shared").value == 50_000, "more than 48 KB are asked for"
    segment(*(place + 4 for place in places))
    assert [row[0] for row in launches_of(stand_in)[len(wanted) :]] == [each.kernel + 101 for each in table.segments[0]]


def launches_of(path: str) -> list[tuple[int, ...]]:
    library = ctypes.CDLL(path)
    rows = (ctypes.c_uint64 * 6 * 64).in_dll(library, "launches")
    return [tuple(row) for row in rows[: ctypes.c_int.in_dll(library, "count").value]]


class Variants:
    """Kernels 0 and 1; which were asked for."""

    def __init__(self, driver: CudaDriver) -> None:
        self.driver, self.asked = driver, list[tuple[int, bool]]()

    def kernel(self, number: int, *, aligned: bool) -> LoadedKernel:
        self.asked.append((number, aligned))
        return self.driver.load(bytes([number + (1 if aligned else 101)]), "kernel", 64 * (number + 1), 0)


@pytest.mark.parametrize("compiler", ["", "no_such_compiler"], ids=["in C", "from Python"])
def test_launches_are_the_same_in_c_and_from_python(stand_in: str, compiler: str) -> None:
    driver = CudaDriver(stand_in)
    variants = Variants(driver)
    planned = [
        PlannedLaunch(0, 5, (2, 0), ()),
        PlannedLaunch(1, 2**31 - 1, (1,), (-7,)),
        PlannedLaunch(0, 1, (1, 2), (3, 2**63 - 1)),
    ]
    with recording() as events:
        launch = launcher_of(planned, variants, driver, Options(compiler=compiler))
    assert any(isinstance(event, FellBack) for event in events) is bool(compiler)
    before = len(launches_of(stand_in))
    launch((160, 320, 480), 9)
    launch((160, 324, 480), 9)
    assert launches_of(stand_in)[before:] == [
        (1, 5, 64, 9, 480, 160),
        (2, 2**31 - 1, 128, 9, 320, 2**64 - 7),
        (1, 1, 64, 9, 320, 480),
        (1, 5, 64, 9, 480, 160),
        (102, 2**31 - 1, 128, 9, 324, 2**64 - 7),
        (101, 1, 64, 9, 324, 480),
    ]
    assert (0, False) in variants.asked
    assert launcher_of([], variants, driver, Options())((), 0) is None


@pytest.mark.parametrize("compiler", ["", "no_such_compiler"], ids=["in C", "from Python"])
def test_a_refused_launch_is_a_build_error_in_either(stand_in: str, compiler: str) -> None:
    driver = CudaDriver(stand_in)
    launch = launcher_of([PlannedLaunch(0, 0, (0,), ())], Variants(driver), driver, Options(compiler=compiler))
    with pytest.raises(BuildError, match="cuLaunchKernel failed with code 1"):
        launch((16,), 0)


def test_open_sizes_are_numbers_of_the_launches_that_need_them(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "build_kernels", built)
    gm = DynamicProgram.traced(lambda x: (x.exp() + 1) * 2, [("n", 64)], {"n": 40}).gm
    sizes = {node.meta["symbol"]: 40 for node in gm.graph.nodes if "symbol" in node.meta}
    plan = plan_execution(schedule(lower_graph(gm, sizes), Options()))
    table = write_launch_table(plan, DeviceFacts())
    gpu = Gpu(torch.device("cpu"), 90, CudaDriver(stand_in), stream=lambda device: 1)
    (segment,) = cuda_segments(plan, table, gpu, Options())
    before = len(launches_of(stand_in))
    for count in (40, 4000, 40, 0):
        segment(1024, 2048, count)
    programs = [row[1] for row in launches_of(stand_in)[before:]]
    assert programs[0] == programs[2] < programs[1], "no program is launched for no point"
    assert len(programs) == 3


def test_what_the_driver_refuses_is_a_build_error(stand_in: str) -> None:
    driver = CudaDriver(stand_in)
    with pytest.raises(BuildError, match="cuModuleGetFunction failed with code 500"):
        driver.load(b"\x01", "other", 128, 0)
    with pytest.raises(BuildError, match="cuLaunchKernel failed with code 1"):
        driver.launch(driver.load(b"\x01", "kernel", 128, 0), 0, 0, [0, 0])


def test_a_machine_without_a_driver_is_told_apart() -> None:
    with pytest.raises(Unsupported, match="no CUDA driver"):
        CudaDriver("libof_no_such_driver.so")
