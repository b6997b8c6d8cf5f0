"""First compile of `(x.sin() + 1).relu()` in a fresh process with an empty cache, in CPU seconds, taken apart.

    python benchmarks/first_compile.py [--stock] [--dynamic] [--runs N]

CPU seconds count this process and its children (the C compiler).  `import` is torch alone; `torch lazy` is what torch
itself imports or sets up when a graph is traced the first time (measured by tracing another program beforehand in the
same process with torch's own fake tensors); `ours` is the rest.  --stock measures torch.compile the same way.
--dynamic: `plumbline.compile(dynamic=True)` instead, from the import of plumbline to the end of the first call.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

CHILD = r"""
import json, resource, sys
def cpu():
    own, children = (resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
marks = [("start", cpu())]
import torch
marks.append(("import torch", cpu()))
x = torch.linspace(-3, 3, 10_000)
def f(x): return (x.sin() + 1).relu()
wanted = f(x)
if sys.argv[1] == "plumbline dynamic":
    import plumbline
    marks.append(("import plumbline", cpu()))
    found = plumbline.compile(f, dynamic=True)(x)
    marks.append(("first call", cpu()))
elif sys.argv[1].startswith("stock"):
    compiled = torch.compile(f, dynamic=sys.argv[1] == "stock dynamic" or None)
    found = compiled(x)
    marks.append(("first call", cpu()))
else:
    # what torch loads on its own: fake tensors, their operator rules, fx
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch import fx
    with FakeTensorMode() as mode:
        y = torch.empty(7); (y.cos() - 2).tanh()
    marks.append(("torch lazy imports", cpu()))
    from plumbline.compiler.graph.tracer import trace
    from plumbline.compiler.native import compile_graph
    from plumbline.compiler.base.options import options_from_environment
    options = options_from_environment().replace(strict=True)
    marks.append(("import plumbline's compiler", cpu()))
    gm = trace(f, (x,))
    marks.append(("trace", cpu()))
    compiled = compile_graph(gm, (x,), options)
    marks.append(("compile_graph", cpu()))
    (found,) = compiled(x)
    marks.append(("run", cpu()))
assert torch.allclose(found, wanted, atol=1e-6)
print(json.dumps([(name, now - before) for (_, before), (name, now) in zip(marks, marks[1:])]))
"""


def measure(kind: str) -> list[tuple[str, float]]:
    """Return (stage, CPU seconds) of one fresh process with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "PLUMBLINE_CACHE_DIRECTORY": os.path.join(cache, "plumbline"),
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"),
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", CHILD, kind], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        return [(name, float(seconds)) for name, seconds in json.loads(done.stdout.splitlines()[-1])]


def least(kind: str, runs: int) -> list[tuple[str, float]]:
    """Return the run that took least of some."""
    return min((measure(kind) for _ in range(runs)), key=lambda found: sum(seconds for _, seconds in found))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="CPU seconds of a first compile")
    parser.add_argument("--stock", action="store_true", help="measure torch.compile in the same run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dynamic", action="store_true", help="with a size that is open")
    arguments = parser.parse_args()
    sizes = " dynamic" if arguments.dynamic else ""
    rows = min(
        (measure(f"plumbline{sizes}") for _ in range(arguments.runs)), key=lambda found: sum(s for _, s in found)
    )
    for name, seconds in rows:
        print(f"plumbline  {name:30} {seconds:7.3f} s")
    ours = sum(seconds for name, seconds in rows if name not in ("import torch", "torch lazy imports"))
    print(f"plumbline  {'ours, imports of ours included':30} {ours:7.3f} s")
    if arguments.stock:
        rows = min(
            (measure(f"stock{sizes}") for _ in range(arguments.runs)), key=lambda found: sum(s for _, s in found)
        )
        for name, seconds in rows:
            print(f"stock      {name:30} {seconds:7.3f} s")


if __name__ == "__main__":
    main()
