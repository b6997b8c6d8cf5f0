"""The process that compiles Triton kernels: one request a line in, one answer a line out.

Run as a script, by path, and imports neither torch nor plumbline: starting it costs what `import triton` costs.  It
calls the stages of Triton's back end one by one, because `triton.compile` hashes the whole library once per process
first (about half a second of CPU); where the stages are not as they are known here, it calls that after all.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

# Without the first, products and sums become one rounding; the second lets libdevice flush denormal numbers.
PRECISE = {"enable_fp_fusion": False, "enable_reflect_ftz": False}
# Without the first there are no assertions, which report an index out of range; the second would add those of overflow.
REPORTING = {"debug": True, "sanitize_overflow": False}
REGISTERS = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
AMD_REGISTERS = re.compile(r"\.vgpr_count:\s*(\d+)")  # in the text of the machine code itself
AMD_SPILLS = re.compile(r"\.sgpr_spill_count:\s*(\d+)[\s\S]*?\.vgpr_spill_count:\s*(\d+)")


def build(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the machine code of a kernel and its text with what they need; request: as `triton_build` writes it."""
    path, name = folder / f"kernel_{request['number']}.py", request["name"]
    # Triton reads a function's source from its file
    path.write_text(request["text"].replace("def kernel(", f"def {name}("))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiler = importlib.import_module("triton.compiler")
    make_target, capability = importlib.import_module("triton.backends.compiler").GPUTarget, request["capability"]
    is_amd = isinstance(capability, str)
    target = make_target("hip", capability, 64) if is_amd else make_target("cuda", capability, 32)
    kernel = getattr(module, name)
    signature = dict(zip(kernel.arg_names, request["signature"], strict=True))
    attributes = {(number,): [["tt.divisibility", 16]] for number in request["aligned"]}
    source = compiler.ASTSource(kernel, signature, {}, attributes)
    reporting = REPORTING if "report(flag" in request["text"].partition("def kernel(")[2] else {}
    options = {"num_warps": request["warps"], **PRECISE, **reporting}
    log = io.StringIO()
    with contextlib.redirect_stdout(log):
        texts, metadata = _staged(source, target, options)
    code, text = (texts["hsaco"], texts["amdgcn"]) if is_amd else (texts["cubin"], texts["ptx"])
    said = text if is_amd else log.getvalue()
    spilled = [int(number) for found in (AMD_SPILLS if is_amd else SPILLS).findall(said) for number in found]
    registers = (AMD_REGISTERS if is_amd else REGISTERS).search(said)
    return {
        "number": request["number"],
        "cubin": base64.b64encode(code).decode(),
        "ptx": text,
        "name": metadata["name"],
        "shared": metadata["shared"],
        "scratch": metadata.get("global_scratch_size", 0) + metadata.get("profile_scratch_size", 0),
        "registers": int(registers[1]) if registers else -1,
        "spills": sum(spilled) if spilled else -1,
    }


def _staged(source: Any, target: Any, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        return _stage_by_stage(source, target, options)
    except (AttributeError, ImportError, TypeError):
        kernel = importlib.import_module("triton").compile(source, target=target, options=options)
        return dict(kernel.asm), dict(kernel.metadata._asdict())


def _stage_by_stage(source: Any, target: Any, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    compiler = importlib.import_module("triton.compiler.compiler")
    back_end = compiler.make_backend(target)
    chosen = back_end.parse_options({**options, **source.parse_options()})
    context = compiler.ir.context()
    compiler.ir.load_dialects(context)
    back_end.load_dialects(context)
    stages: dict[str, Any] = {}
    back_end.add_stages(stages, chosen, source.language)
    functions, modules = back_end.get_codegen_implementation(chosen), back_end.get_module_map()
    made = source.make_ir(target, chosen, functions, modules, context)
    texts: dict[str, Any] = {}
    metadata: dict[str, Any] = {"target": target, **vars(chosen)}
    for name, stage in stages.items():
        made = stage(made, metadata)
        if name in ("ptx", "cubin", "amdgcn", "hsaco"):
            texts[name] = made
    return texts, metadata


def serve() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    with contextlib.suppress(ImportError, AttributeError):
        knobs = importlib.import_module("triton").knobs
        knobs.nvidia.dump_ptxas_log = True  # says registers and spills
        knobs.compilation.disable_line_info = True  # half the size of a cubin
    with tempfile.TemporaryDirectory(prefix="plumbline-triton-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = build(request, Path(folder))
            except Exception as error:
                # Triton explains itself on many lines; the first of the last one says what is wrong
                answer = {"number": request["number"], "error": f"{type(error).__name__}: {error}"[:2000]}
                traceback.print_exc(limit=3)
            answers.write(f"{json.dumps(answer)}\n")
            answers.flush()


if __name__ == "__main__":
    serve()
