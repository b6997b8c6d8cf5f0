"""How generated C reads and writes memory: elements of every dtype to registers and back."""

from __future__ import annotations

import torch

from ..c_types import REGISTER, STORED, TAG
from .c_library import INLINE, Library


class MemoryFunctions:
    """Adds loads and stores to the functions of one C file."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def load(self, dtype: torch.dtype, lanes: int) -> str:
        """Return the function that reads lanes neighbouring elements into a register."""
        name = f"load_{TAG[dtype]}_{lanes}"
        if name in self.library.functions:
            return name
        register = REGISTER[dtype]
        kind = self.library.type(register, lanes)
        if dtype == torch.float16:
            body = self._load_half(lanes)
        elif lanes == 1:
            body = {
                torch.bool: "return -(*p != 0);",
                torch.bfloat16: "unsigned t = (unsigned)*p << 16; float r; __builtin_memcpy(&r, &t, 4); return r;",
            }.get(dtype, "return *p;")
        elif dtype == torch.bfloat16:
            ints = self.library.type("i", lanes)
            memory = self.library.memory_type(dtype, lanes)
            body = f"return ({kind})(__builtin_convertvector(*(const {memory} *)p, {ints}) << 16);"
        else:
            memory = self.library.memory_type(dtype, lanes)
            body = f"return __builtin_convertvector(*(const {memory} *)p, {kind});"
            if dtype == torch.bool:
                body = f"return __builtin_convertvector(*(const {memory} *)p, {kind}) != 0;"
            elif dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
                body = f"return ({kind})*(const {memory} *)p;"
        return self.library.define(name, f"{INLINE} {kind} {name}(const {STORED[dtype]} *p) {{ {body} }}")

    def store(self, dtype: torch.dtype, lanes: int) -> str:
        """Return the function that writes a register to neighbouring elements."""
        name = f"store_{TAG[dtype]}_{lanes}"
        if name in self.library.functions:
            return name
        kind = self.library.type(REGISTER[dtype], lanes)
        if dtype == torch.float16:
            body = self._store_half(lanes)
        elif lanes == 1:
            body = {
                torch.bool: "*p = (unsigned char)(x & 1);",
                torch.bfloat16: "unsigned t; __builtin_memcpy(&t, &x, 4); *p = (unsigned short)(t >> 16);",
            }.get(dtype, f"*p = ({STORED[dtype]})x;")
        else:
            memory = self.library.memory_type(dtype, lanes)
            ints = self.library.type("i", lanes)
            shown = {torch.bool: "x & 1", torch.bfloat16: f"({ints})x >> 16"}.get(dtype, "x")
            body = f"*({memory} *)p = __builtin_convertvector({shown}, {memory});"
            if dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
                body = f"*({memory} *)p = ({memory})x;"
        return self.library.define(name, f"{INLINE} void {name}({STORED[dtype]} *p, {kind} x) {{ {body} }}")

    def _load_half(self, lanes: int) -> str:
        kind = self.library.type("f", lanes)
        if lanes == 1:
            return "_Float16 h; __builtin_memcpy(&h, p, 2); return (float)h;"
        builtins = self.library.half_builtins(lanes)
        if builtins is not None:
            shorts, _, widen = builtins
            return f"{shorts} h; __builtin_memcpy(&h, p, sizeof h); return {widen};"
        return (
            f"{kind} r; for (int k = 0; k < {lanes}; k++)"
            " { _Float16 h; __builtin_memcpy(&h, p + k, 2); r[k] = (float)h; }"
            " return r;"
        )

    def _store_half(self, lanes: int) -> str:
        if lanes == 1:
            return "_Float16 h = (_Float16)x; __builtin_memcpy(p, &h, 2);"
        builtins = self.library.half_builtins(lanes)
        if builtins is not None:
            shorts, narrow, _ = builtins
            return f"{shorts} h = {narrow}; __builtin_memcpy(p, &h, sizeof h);"
        return f"for (int k = 0; k < {lanes}; k++) {{ _Float16 h = (_Float16)x[k]; __builtin_memcpy(p + k, &h, 2); }}"
