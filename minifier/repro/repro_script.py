"""The repro script: graph, inputs, configuration, judgement and expected signature in one file."""

import hashlib
import os
import platform
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import torch

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.graph.graph_printing import GraphText, graph_text
from plumbline.compiler.graph.node_values import placeholders
from plumbline.oracle.harness.compilers import CompileRequest

from ..failure_signature import FailureSignature
from ..graphs.graph_case import GraphCase, case_key
from ..import_path import import_path
from ..reduce.graph_judge import GraphRules
from .repro_template import BUILD_GRAPH, COMPILE, MAIN
from .value_text import inputs_text


@dataclass(frozen=True, slots=True)
class History:
    """Where a reduced graph came from, for the script's head.

    call: what was called; place: the user's line; label: which of its graphs.  ops_before, queries: of the reduction.
    command: the command line that makes the script again.  verdict: the judge's sentence about the smallest graph.
    tried: what the graph was tried without, by kind, all in vain; empty: not minimal.  proofs: fresh processes that
    showed the failure, 0 before the proof.
    """

    call: str
    place: str
    label: str
    ops_before: int
    queries: int
    verdict: str
    command: str = ""
    tried: Mapping[str, int] = field(default_factory=dict)
    proofs: int = 0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How the graph is compiled again."""

    compiler: str
    backend: str
    after: str
    request: CompileRequest
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """text: the Python file.  blob: content of `<name>.inputs.pt` beside it, None when the values are inside."""

    text: str
    blob: bytes | None


def repro_script(
    case: GraphCase,
    signature: FailureSignature,
    rules: GraphRules,
    pipeline: Pipeline,
    history: History,
    file_name: str,
) -> Script:
    """Write the script of a case whose nodes have example values; `file_name` is what it will be called.

    Raises Unsupported for a graph that calls what no import can name.
    """
    written = graph_text(case.graph)
    imports = _imports(written)
    names = [node.name for node in placeholders(case.graph.graph)]
    values = inputs_text(names, case.inputs)
    blob_name = f"{file_name.removesuffix('.py')}.inputs.pt"
    digest = hashlib.sha256(values.blob).hexdigest() if values.blob else ""
    parts = [
        f'"""{_head(case, signature, pipeline, history, file_name)}"""\n',
        "import ast\nimport base64\nimport hashlib\nimport inspect\nimport operator\nimport pathlib\nimport sys",
        "from math import inf, nan\n",
        f"import torch\n\n{imports}",
        f"INPUTS_FILE, INPUTS_SHA256 = {blob_name if values.blob else None!r}, {digest!r}",
        f"EXPECTED = {asdict(signature)!r}",
        f"RULES = {_rules(rules)}",
        f"OPTIONS = {_request(pipeline.request)}\n\n",
        written.text.removeprefix("import operator\n\n"),
        _inputs_function(names, values.lines),
        _configure_function(pipeline.settings),
        BUILD_GRAPH,
        _compile_function(pipeline),
        MAIN,
    ]
    return Script("\n".join(parts), values.blob)


def _head(case: GraphCase, signature: FailureSignature, pipeline: Pipeline, history: History, file_name: str) -> str:
    count = len(case)
    lines = [
        f"{count} operator{'s' if count != 1 else ''} that {pipeline.compiler}:{pipeline.backend} gets wrong.",
        "",
        f"{signature.sentence()}",
        f"{history.verdict}",
        "",
        f"Run:  python {file_name}    exit status 1: reproduces, 0: fixed, 2: fails in another way, 125: cannot test",
        f"      pytest {file_name}    (a strict xfail; works with git bisect run python {file_name}, too)",
        "",
        f"From: {history.call}{' at ' * bool(history.place)}{history.place}, {history.label} after {pipeline.after}",
        f"Size: {history.ops_before} -> {count} operators in {history.queries} queries; case {case_key(case)[:16]}",
        *certificate(history.tried, history.proofs),
        *([f"Made: {history.command}"] if history.command else []),
        "",
        *environment_facts(),
    ]
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''").rstrip() + "\n"


def certificate(tried: Mapping[str, int], proofs: int) -> list[str]:
    """Return the lines that say what was checked of a script: that it reproduces, and that nothing of it can go."""
    counted = ", ".join(f"{count} {kind}" for kind, count in tried.items() if count)
    minimal = (
        f"yes: tried without, all in vain: {counted or 'there is nothing to leave out'}" if tried else "not checked"
    )
    return [
        *([f"Reproduces: {proofs}/{proofs} in fresh processes"] if proofs else []),
        f"1-minimal:  {minimal}",
        "Reference:  eager, run first in the same process; differences are measured against float64",
    ]


def environment_facts() -> list[str]:
    """Return what a reader needs to know of this machine, one fact a line."""
    facts = [
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        f"CPU capability {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads",
    ]
    shown = re.compile(r"(TORCH|PLUMBLINE|TRITON|OMP_|MKL_)(?!.*(DIR|PATH|FILE|CACHE|DB|DATABASE))")
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if shown.match(name)]
    return facts + [f"environment: {' '.join(variables)}"] * bool(variables)


def _inputs_function(names: list[str], lines: tuple[str, ...]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    returned = ", ".join(names) + ("," if len(names) == 1 else "")
    if not names:
        return '\ndef inputs():\n    """The graph has none."""\n    return ()\n'
    return f'\ndef inputs():\n    """Return fresh inputs, by value."""\n{body}\n    return ({returned})\n'


def _configure_function(settings: str) -> str:
    lines = [f"torch.set_num_threads({torch.get_num_threads()})"]
    if torch.get_default_dtype() != torch.float32:
        lines.append(f"torch.set_default_dtype({torch.get_default_dtype()})")
    if torch.get_float32_matmul_precision() != "highest":
        lines.append(f"torch.set_float32_matmul_precision({torch.get_float32_matmul_precision()!r})")
    if torch.are_deterministic_algorithms_enabled():
        lines.append("torch.use_deterministic_algorithms(True)")
    modules = sorted({line.split(".config.")[0] + ".config" for line in settings.splitlines() if ".config." in line})
    lines = [f"import {module}" for module in modules] + lines + settings.splitlines()
    body = textwrap.indent("\n".join(lines), "    ")
    return f'\ndef configure():\n    """Set the configuration under which it failed."""\n{body}\n'


def _compile_function(pipeline: Pipeline) -> str:
    inner = pipeline.after == "aot" and pipeline.backend == "inductor"
    text = COMPILE[pipeline.compiler, inner]
    return text.replace("@BACKEND@", pipeline.backend).replace("@AFTER@", pipeline.after)


def _rules(rules: GraphRules) -> str:
    return repr({"grad": rules.grad, "gradients": rules.gradients, "ignore": sorted(rules.ignore)})


def _request(request: CompileRequest) -> str:
    return repr({"mode": request.mode, "options": dict(request.options) if request.options else None})


def _imports(written: GraphText) -> str:
    """Return statements that bind the names which the graph's text leaves open."""
    lines = []
    for name, value in written.scope.items():
        path = import_path(value)
        if path is None:
            what = f"the graph uses {value!r:.80}, which no import can name"
            raise Unsupported(what, why="a script must run by itself", hint="minify with --after aot")
        module, attribute = path
        if module.split(".")[0] != "torch":
            lines.append(f"import {module}")
        lines.append(f"{name} = {module}.{attribute}")
    return "\n".join(dict.fromkeys(lines)) + "\n" * bool(lines)
