"""Truth values of small tensors that are computed at entry, so that a branch on them does not end the graph.

A branch on data is a break, because the graph would have to run before the branch is known. Where the operations that
lead to it are few, and their tensors small and on the CPU, they are run before everything else, on copies of the
inputs: what they gave while capturing becomes a guard. That is worth it where a break would be worse than another form
of the code: in a loop, which would break at each turn, in torch's own code, such as steps of optimizers, and where the
program does not branch itself (`min` of tensors).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ..base.nested import leaves
from ..base.torch_facts import storage_key
from ..bytecode.instruction import Decoded, Instruction
from ..values.data_question import DataQuestion
from ..values.guard import Guard, GuardKind
from ..values.source import Inject, Source

MOST_OPERATIONS = 300  # of all questions of one capture
_MOST_ELEMENTS = 4096  # of one tensor that is computed for an answer
_MOST_ELEMENTS_ASKED_FOR = 65536  # where the user has asked for numbers in the graph
_MOST_QUESTIONS = 64


@dataclass(frozen=True, slots=True, eq=False)
class DataNumber(Source):
    """A number that a few operations on the data of inputs give."""

    reads_data = True
    of: Source
    others: tuple[Source, ...]
    question: DataQuestion

    def base(self) -> Source:
        """Return the first input."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return the call of the question."""
        others = "".join(f", {_whole_text(other, inject)}" for other in self.others)
        return f"{inject(self.question.number)}({base}{others})"

    def words(self) -> str:
        """Return what people read of it."""
        return f"a number computed from {', '.join(one.words() for one in (self.of, *self.others))}"


def _whole_text(source: Source, inject: Inject) -> str:
    base = source.base()
    return source.text("" if base is None else _whole_text(base, inject), inject)


def storages_of(value: object) -> set[int]:
    """Return the keys of the storages of the tensors in a value."""
    tensors = (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))
    return {storage_key(tensor) for tensor in tensors if tensor.layout is torch.strided}


def is_of_torch(namespace: dict[str, object]) -> bool:
    """Return whether code with these globals is torch's own."""
    return str(namespace.get("__name__", "")).startswith("torch.")


def stands_in_loop(namespace: dict[str, object], code: Decoded, here: Instruction) -> bool:
    """Return whether an instruction is in the body of a loop, or its code is torch's own."""
    if is_of_torch(namespace):
        return True
    return any(
        "BACKWARD" in jump.name
        and jump.target is not None
        and (jump.target <= here.index <= jump.index or _tests(jump, here))
        for jump in code.instructions
    )


def _tests(jump: Instruction, here: Instruction) -> bool:
    """Return whether an instruction belongs to the first test of a `while`, which stands in front of the loop."""
    return jump.line == here.line and here.index < jump.index


@dataclass(eq=False)
class EntryQuestions:
    """The questions of one capture; graph, inputs: its graph, and where the placeholders come from."""

    graph: fx.Graph
    inputs: dict[fx.Node, tuple[Source, object]]
    asked: list[tuple[fx.Node, object]] = field(default_factory=list)  # with the answers
    needed: dict[fx.Node, None] = field(default_factory=dict)

    def answer(self, node: fx.Node, *, written: bool, of_torch: bool) -> object | None:
        """Return the number that a node of one element gives for the inputs of now; None where that takes too much.

        written: also where the program writes to what it depends on: then it mostly is another number at each call.
        of_torch: also where parameters take part. What a model computes is not to run twice; steps of optimizers are.
        """
        needed = self._slice(node)
        if needed is not None and not written and any("wrote" in one.meta for one in needed):
            return None
        if needed is not None and not of_torch and any(isinstance(x, torch.nn.Parameter) for x in self._reals(needed)):
            return None
        if needed is None or len(self.asked) >= _MOST_QUESTIONS or len({**self.needed, **needed}) > MOST_OPERATIONS:
            return None
        question, sources = self._question([(node, None)], needed, "")
        del sources
        try:
            (found,) = question.answers(*self._reals(needed))
        except Exception:  # eager raises where the program makes the call
            return None
        if found != found:  # NaN is never the number expected
            return None
        self.asked.append((node, found))
        self.needed |= needed
        return found

    def number(self, node: fx.Node) -> "tuple[DataNumber, object] | None":
        """Return where the number in a node is found at entry, and what it is now; None where that takes too much."""
        needed = self._slice(node, _MOST_ELEMENTS_ASKED_FOR)
        if needed is None or len(needed) > MOST_OPERATIONS:
            return None
        question, sources = self._question([(node, None)], needed, "")
        try:
            (found,) = question.answers(*self._reals(needed))
        except Exception:  # as in `answer`
            return None
        return DataNumber(sources[0], sources[1:], question), found

    def guards(self) -> list[Guard]:
        """Return the guard that demands the answers."""
        if not self.asked:
            return []
        origin = self.asked[0][0].meta.get("origin")
        words = f"what the branches from {origin.place()} on ask" if origin is not None else "what branches ask"
        question, sources = self._question(self.asked, self.needed, words)
        return [Guard(sources[0], GuardKind.DATA, question, origin, sources[1:])]

    def _reals(self, needed: dict[fx.Node, None]) -> list[object]:
        return [self.inputs[node][1] for node in self.graph.nodes if node in needed and node in self.inputs]

    def _question(
        self, asked: list[tuple[fx.Node, Any]], needed: dict[fx.Node, None], words: str
    ) -> tuple[DataQuestion, tuple[Source, ...]]:
        """Return the question as a function of the inputs it needs, and where those come from."""
        graph, copies, sources, copied = fx.Graph(), dict[fx.Node, fx.Node](), list[Source](), list[bool]()
        written = {storage for node in needed for storage in node.meta.get("wrote", ())}
        for node in self.graph.nodes:
            if node not in needed:
                continue
            copies[node] = graph.node_copy(node, lambda one: copies[one])
            if node in self.inputs:
                sources.append(self.inputs[node][0])
                copied.append(bool(written & storages_of(node.meta.get("val"))))
        graph.output(tuple(copies[node] for node, _ in asked))
        function: Callable[..., Any] = fx.GraphModule(torch.nn.Module(), graph).forward
        return DataQuestion(function, tuple(copied), tuple(found for _, found in asked), words), tuple(sources)

    def _slice(self, target: fx.Node, most: int = _MOST_ELEMENTS) -> dict[fx.Node, None] | None:
        """Return the nodes that a node depends on, by values and by memory; None if one of them is not to run twice."""
        needed, storages = {target}, storages_of(target.meta.get("val"))
        inputs = 0
        for node in reversed(self.graph.nodes):
            if node not in needed and not (storages & node.meta.get("wrote", set())):
                continue
            if not _is_repeatable(node, most):
                return None
            needed |= {node, *node.all_input_nodes}
            for part in (node, *node.all_input_nodes):
                storages |= storages_of(part.meta.get("val"))
            inputs += node.op == "placeholder"
        ordered = dict.fromkeys(node for node in self.graph.nodes if node in needed)
        reals = [real for node in ordered if node.op == "placeholder" for real in [self.inputs[node][1]]]
        if not inputs or not all(isinstance(real, torch.Tensor) for real in reals):
            return None
        if any("wrote" in node.meta for node in ordered) and _share(reals):
            return None
        return ordered


def _share(reals: list[Any]) -> bool:
    places = [real.untyped_storage().data_ptr() for real in reals]
    return len(set(places)) != len(places)


def _is_repeatable(node: fx.Node, most: int) -> bool:
    """Return whether a node may run at entry too: small tensors, no draws, nothing but what it gives and writes."""
    if node.meta.get("draws") or node.op not in ("placeholder", "call_function", "call_method"):
        return False
    module = str(getattr(node.target, "__module__", None) or "torch").partition(".")[0]
    if node.op == "call_function" and module not in ("torch", "_operator", "math", "builtins"):
        return False
    values = [part.meta.get("val") for part in (node, *node.all_input_nodes)]
    tensors = [leaf for leaf in leaves(values) if isinstance(leaf, torch.Tensor)]
    return bool(tensors) and all(_is_small(tensor, most) for tensor in tensors)


def _is_small(tensor: torch.Tensor, most: int) -> bool:
    known = all(type(size) is int for size in tensor.shape) and tensor.layout is torch.strided
    return known and tensor.device.type == "cpu" and tensor.numel() <= most
