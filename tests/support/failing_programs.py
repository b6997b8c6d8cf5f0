"""Random small programs, as text, that write, draw and count, and then may fail on data inside their own handlers."""

import random

PROLOGUE = """
import random
import torch
import plumbline
from torch.nn import functional

STATE = {"n": 0}
BUFFER = torch.zeros(3)
COUNT = torch.zeros((), dtype=torch.long)
MEAN, VARIANCE = torch.zeros(3), torch.ones(3)


class Holder:
    steps = 0


HOLDER = Holder()
"""

_EFFECTS = (
    "x.add_({number})",
    "x[0].mul_(2)",
    "BUFFER.add_(y.detach().sum())",
    "BUFFER[1:] = x.detach()[0, 1:]",
    "COUNT += 1",
    'STATE["n"] += {number}',
    "HOLDER.steps += 1",
    "log.append({number})",
    "y = functional.dropout(y, 0.5)",
    "y = y + torch.rand(3)",
    "y = y + torch.empty(3).uniform_(1, 2)",
    "y = functional.batch_norm(y, MEAN, VARIANCE, training=True)",
    "y = torch.sin(y) * {number}",
    "y = functional.normalize(y, dim=0) + w",
)
_FAILURES = (
    "y = y + x.detach()[i.view(1)]",
    "y = y + torch.index_select(y, 0, i.view(1))",
    "y = y + functional.embedding(i, w.detach().expand(2, 3))",
    "torch.linalg.cholesky(torch.eye(3) * (1.5 - i))",
    "log.append(6 // (1 - i) * y.detach()[0])",
    "y = y * functional.nll_loss(y, i.view(1).expand(2) * 3)",
    "x[i.view(1), 0] = 1.5",
    "torch.bernoulli(x.detach().abs() + i)",
)
_BREAK = "plumbline.graph_break()"


def program(seed: int) -> str:
    """Return the text of a module with a function `whole(x, w, i, log)`; it draws, so seed before it is called."""
    chosen = random.Random(seed)
    lines = [PROLOGUE, "def part(x, w, y, i, log):"]
    lines += _indented(_block(chosen, 1), 1)
    lines += ["    return y", "", "", "def whole(x, w, i, log):", "    y = (x * w).clone()"]
    lines += _indented(_block(chosen, 0), 1)
    return "\n".join([*lines, "    return y.sum()", ""])


def _block(chosen: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(chosen.randint(2, 4)):
        kind = chosen.random()
        if kind < 0.55 or depth > 2:
            lines.append(chosen.choice(_EFFECTS).format(number=chosen.randint(1, 3)))
        elif kind < 0.75:
            lines += _guarded(chosen, depth)
        elif kind < 0.85:
            lines.append(chosen.choice(_FAILURES))
        elif kind < 0.9:
            lines.append(_BREAK)
        elif depth == 0:
            lines.append("y = part(x, w, y, i, log)")
        else:
            lines += ["with torch.no_grad():", *_indented(_block(chosen, depth + 1), 1)]
    return lines


def _guarded(chosen: random.Random, depth: int) -> list[str]:
    error = chosen.choice(("IndexError", "RuntimeError", "(IndexError, RuntimeError)", "Exception"))
    body = [*_block(chosen, depth + 1), chosen.choice(_FAILURES)]
    if not any(line.startswith((" ", "with")) for line in body):
        chosen.shuffle(body)
    handler = [chosen.choice(_EFFECTS).format(number=3), f"log.append({error.strip('()').split(',')[0]}.__name__)"]
    lines = ["try:", *_indented(body, 1), f"except {error} as problem:", *_indented(handler, 1)]
    if chosen.random() < 0.2:
        lines += ["    raise KeyError(type(problem).__name__)"]
    if chosen.random() < 0.3:
        lines += ["finally:", "    log.append(STATE['n'])"]
    return lines


def _indented(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]
