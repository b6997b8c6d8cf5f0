"""What a stage gives with and without an application, as two files that run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.events import Artifact

# Per kind, the (stage, artifact) in which an application can be seen, the nearest to it first.
_SEEN_IN: dict[str, tuple[tuple[str, str], ...]] = {
    "decomposition": (("autograd", "joint"),),
    "pass": (("autograd", "joint"),),
    "recompute": (("autograd", "forward"), ("autograd", "backward")),
    "autograd": (("autograd", "joint"),),
    "native": (("lowering", "program.py"),),
    "lowering": (("lowering", "program.py"),),
    "loop-pass": (("schedule", "program.py"),),
    "inlining": (("schedule", "program.py"),),
    "fusion": (("schedule", "program.py"),),
    "kernel": (("codegen", "graph.c"), ("codegen", "host.py")),
    "reuse": (("codegen", "host.py"),),
    "stash": (("codegen", "graph.c"),),
    "threads": (("codegen", "graph.c"),),
    "vector": (("codegen", "graph.c"),),
}

_MAIN = '''

def made_up(text):
    """Return numbers of a fixed seed in the layout that a comment tells: `f32[2, 3] strides (1, 2)`."""
    short = {{"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
             "i16": "int16", "i8": "int8", "u8": "uint8", "b8": "bool", "c64": "complex64", "c128": "complex128"}}
    name, shape, strides = re.match(r"(\\w+)\\[([^\\]]*)\\](?: strides \\(([^)]*)\\))?", text).groups()
    dtype = getattr(torch, short.get(name, name))
    shape = [int(part) for part in shape.split(",") if part.strip()]
    values = torch.randn(shape)
    values = values.to(dtype) if dtype.is_floating_point or dtype.is_complex else torch.ones(shape, dtype=dtype)
    if strides is None or not values.numel():
        return values
    strides = [int(part) for part in strides.split(",") if part.strip()]
    return torch.empty_strided(shape, strides, dtype=dtype).copy_(values)


if __name__ == "__main__":
    torch.manual_seed(0)
    for number, result in enumerate(forward({arguments})):
        print(number, result)
'''


@dataclass(frozen=True, slots=True)
class StageTexts:
    """The text of one stage without and with an application; stage, name: which one; language: of the texts."""

    stage: str
    name: str
    language: str
    without: str
    having: str

    def write(self, folder: Path, title: str) -> tuple[Path, Path]:
        """Write both into a folder and return (before, after)."""
        folder.mkdir(parents=True, exist_ok=True)
        suffix = {"python": "py", "c": "c"}.get(self.language, "txt")
        pair = folder / f"before.{suffix}", folder / f"after.{suffix}"
        for file, text, which in zip(pair, (self.without, self.having), ("without", "with"), strict=True):
            file.write_text(self._whole(text, f"{self.stage} {which} {title}"), encoding="utf-8")
        return pair

    def _whole(self, text: str, title: str) -> str:
        if self.language == "c":
            return f"/* {title} */\n{text}"
        if self.language != "python" or "def forward(" not in text:
            return f"# {title}\n{text}"
        loops = "from plumbline.compiler.loops.loop_printing import scalar_operations\n\nop = scalar_operations()\n"
        head = "import re\n\nimport torch\n" + (loops if "(op, " in text else "")
        numbers = "nan, inf = float('nan'), float('inf')"
        return f"# {title}\n{head}{numbers}\n\n{text}{_MAIN.format(arguments=_arguments(text))}"


def _arguments(text: str) -> str:
    """Return the arguments of `forward`, each made up from the comment that tells its type."""
    body = text[text.index("def forward(") :]
    names = [name.strip() for name in body[len("def forward(") : body.index(")")].split(",") if name.strip()]
    types = dict(re.findall(r"^    # (\w+): (.+)$", body, re.MULTILINE))
    return ", ".join(f"made_up({types[name]!r})" if name in types else "2" for name in names)


def difference(kind: str, without: Sequence[Artifact], having: Sequence[Artifact]) -> StageTexts | None:
    """Return the first text of the stage of a kind that is another one with and without the application."""
    for stage, name in _SEEN_IN.get(kind, ()):
        one = [text for text in without if (text.stage, text.name) == (stage, name)]
        other = [text for text in having if (text.stage, text.name) == (stage, name)]
        for before, after in zip(one, other, strict=False):
            if before.text != after.text:
                return StageTexts(stage, name, after.language, before.text, after.text)
        if len(other) > len(one):  # without it there is no such stage
            after = other[len(one)]
            return StageTexts(stage, name, after.language, "# nothing: the stage is left out\n", after.text)
    return None
