"""Stock torch.compile under the judge, whatever its disk caches hold and the user has set."""

import subprocess
import sys
import textwrap

import pytest
import torch

from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler


@pytest.mark.cc
@pytest.mark.slow
def test_a_backward_in_the_disk_cache_runs_twice(tmp_path, monkeypatch):
    """What a user's run leaves there may overwrite what its forward saved: that backward runs only once."""
    program = """
        import sys, torch
        def f(x):
            return torch.nn.functional.dropout(x, 0.5)
        x = torch.ones(64, requires_grad=True)
        if sys.argv[1] == "user":
            torch.compile(f, options={"fallback_random": True})(x).sum().backward()
        else:
            from plumbline.oracle import check
            from plumbline.oracle.harness.compilers import CompileRequest
            print(check(f, (x,), request=CompileRequest(options={"fallback_random": True})))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    for role in ("user", "judge"):
        done = subprocess.run([sys.executable, script, role], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("EQUAL"), done.stdout


@pytest.mark.parametrize("before", [True, False])
def test_settings_are_the_users_again(before):
    settings = torch._functorch.config
    stock = find_compiler("torch", "eager")
    stock.reset()
    with settings.patch(donated_buffer=before):
        stock.compile(torch.sin, "eager", CompileRequest(), rng="eager")
        stock.compile(torch.cos, "eager", CompileRequest(), rng="eager")
        assert settings.donated_buffer is False
        stock.reset()
        assert settings.donated_buffer is before
