import pytest
import torch

from plumbline.compiler.base.seam import planting
from plumbline.compiler.stored import process_facts
from plumbline.compiler.stored.process_facts import digest_of, obstacle
from plumbline.compiler.stored.torch_switches import registered_kernels


def test_another_text_under_the_folder_is_another_digest(tmp_path):
    seen = set()
    (tmp_path / "inner").mkdir()
    for name, text in (("a.py", ""), ("a.py", "x = 1"), ("a.py", "x = 2"), ("inner/a.py", ""), ("b.py", "x = 2")):
        (tmp_path / name).write_text(text)
        seen.add(digest_of(tmp_path))
    (tmp_path / "b.py").rename(tmp_path / "inner" / "b.py")
    seen.add(digest_of(tmp_path))
    assert len(seen) == 6
    before = digest_of(tmp_path)
    (tmp_path / "notes.txt").write_text("no code")
    assert digest_of(tmp_path) == before


SWITCHES = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
    "uninitialised memory": (
        lambda: torch.utils.deterministic.fill_uninitialized_memory,
        lambda value: setattr(torch.utils.deterministic, "fill_uninitialized_memory", value),
        False,
    ),
    "precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"),
    "anomalies": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True),
    "flash": (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp, False),
    "mathematical": (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, False),
    "fast path": (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, False),
    "mkldnn": (
        lambda: torch.backends.mkldnn.enabled,
        lambda value: setattr(torch.backends.mkldnn, "enabled", value),
        False,
    ),
    "threads": (torch.get_num_threads, torch.set_num_threads, 3),
    "default device": (lambda: None, torch.set_default_device, "meta"),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_of_torch_takes_part(name):
    read, write, other = SWITCHES[name]
    before, facts = read(), process_facts.process_facts()
    try:
        write(other)
        changed = process_facts.process_facts()
    finally:
        write(before)
    assert changed != facts
    assert process_facts.process_facts() == facts


@pytest.mark.parametrize("name", ["source_digest", "torch_build", "cpu_features", "_installed"])
def test_versions_and_the_machine_take_part(name, monkeypatch):
    facts = process_facts.process_facts()
    process_facts._fixed.cache_clear()
    real = getattr(process_facts, name)
    other = {
        "source_digest": lambda: "another text",
        "torch_build": lambda: ("2.99", *real()[1:]),
        "cpu_features": lambda: type(real())("other", 8, False, ()),
        "_installed": lambda package: "0.0",
    }
    monkeypatch.setattr(process_facts, name, other[name])
    assert process_facts.process_facts() != facts
    monkeypatch.undo()
    process_facts._fixed.cache_clear()
    assert process_facts.process_facts() == facts


def test_nothing_is_kept_while_something_else_is_in_force(monkeypatch):
    assert obstacle() == ""
    with planting():
        assert "planted" in obstacle()
    with torch.overrides.TorchFunctionMode():
        assert "mode" in obstacle()
    monkeypatch.setattr(torch.nn.functional, "linear", lambda *args: args[0])
    assert "torch.nn.functional.linear" in obstacle()
    monkeypatch.undo()
    assert obstacle() == ""


def test_nothing_is_kept_where_a_kernel_of_torchs_is_replaced():
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_trilinear", lambda *args: args[0], "CPU")
        assert "aten/_trilinear/CPU" in obstacle()
    assert obstacle() == ""


def test_what_torch_registers_with_the_first_vmap_changes_nothing():
    before = process_facts.process_facts()
    torch.func.vmap(torch.sin)(torch.ones(2))
    assert any(key.endswith("/FuncTorchBatched") for key in registered_kernels)
    assert obstacle() == ""
    assert process_facts.process_facts() == before


def test_a_shape_rule_of_somebodys_takes_part():
    facts = process_facts.process_facts()
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_trilinear", lambda *args: args[0], "Meta")
        assert process_facts.process_facts() != facts


def test_torchs_own_rules_of_vmap_are_no_obstacle():
    """Torch registers them in Python at the first vmap of a process."""
    torch.vmap(torch.sin)(torch.ones(2, 3))
    assert obstacle() == ""
