"""flex_attention: torch's operator as one node, over graphs of the functions that change and mask the scores."""

import contextlib
from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from ...base.torch_facts import annotate_graph, dense_attention, flex_attention_operator
from ...graph.subgraphs.subgraph_operator import COMPILER
from ..constant import Known
from ..guard import GuardKind
from ..python.containers.mappings import DictValue
from ..python.containers.sequences import SequenceValue
from ..reasons import ARGUMENT_NOT_KNOWN, TORCH_CALL_FORM, Break
from ..rule_tables import calls, wraps_type
from ..source import Source
from ..value import Arguments, CaptureContext, Keywords, Value
from .tensor import TensorValue
from .transforms import plain


@calls(annotate_graph)
def _annotate(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.call(ctx.known(contextlib.nullcontext), [], {})


@wraps_type(type(flex_attention_operator))
def _operator(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return Known(value, source)


class AttentionCall:
    """What runs at the node: the operator, with the two functions as graphs."""

    def __init__(self, score: fx.GraphModule, mask: fx.GraphModule, scale: float, settings: dict[str, Any]) -> None:
        self.score = score
        self.mask = mask
        self.scale = scale
        self.settings = settings
        self.__name__ = "flex_attention"
        self.__module__ = __name__

    def __call__(self, query: Any, key: Any, value: Any, blocks: Any, lifted: tuple[Any, Any]) -> Any:
        """Run the operator; lifted: the tensors that the two functions read from outside."""
        first, second = (tuple(tensors) for tensors in lifted)
        mask = (*plain(tuple(blocks)), self.mask)
        run = flex_attention_operator if COMPILER.get() is None else dense_attention  # which a trace records
        return run(query, key, value, self.score, mask, self.scale, self.settings, first, second)


class _IndexByTensors(TorchFunctionMode):
    """Indexes by tensors without dimensions as by tensors, not as by numbers: the operator calls under vmap."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch."""
        if func is torch.Tensor.__getitem__:
            indices = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(isinstance(index, torch.Tensor) for index in indices):
                return torch.ops.aten.index.Tensor(args[0], list(indices))
        return func(*args, **(kwargs or {}))


@calls(flex_attention_operator)
def _flex_attention(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 7 or kwargs:
        raise Break(TORCH_CALL_FORM, "flex_attention's operator in another form")
    query, key, value, score, blocks, scale, settings = map(ctx.realize, args)
    known = scale.is_constant() and isinstance(settings, DictValue) and settings.is_constant()
    if not known or not isinstance(blocks, SequenceValue) or not isinstance(query, TensorValue):
        raise Break(ARGUMENT_NOT_KNOWN, "flex_attention with settings that are not known")
    *rows, mask = blocks.elements(ctx)
    scalars: Any = ctx.graph.fake_run(_scalars, [query.fake], {}, "scores")
    number, *indices = scalars
    with _IndexByTensors():
        score_body = ctx.graph.evaluate_apart(score, (number, *indices), {})
        mask_body = ctx.graph.evaluate_apart(mask, tuple(indices), {})
    pairs = [ctx.realize(part).graph_argument(ctx) for part in (query, key, value, *rows)]
    nodes, fakes = [node for node, _ in pairs], [fake for _, fake in pairs]
    numbers: Any = (scale.constant(), settings.constant())
    target = AttentionCall(score_body[1], mask_body[1], *numbers)
    lifted = (score_body[2], mask_body[2])
    examples: Any = [tuple(node.meta["example_value"] for node in part) for part in lifted]

    def run(query: Any, key: Any, value: Any, *parts: Any) -> Any:
        return target(query, key, value, parts, examples)

    result = ctx.graph.fake_run(run, fakes, {}, "flex_attention")
    return ctx.graph.add(target, (*nodes[:3], tuple(nodes[3:]), lifted), result)


def _scalars(query: torch.Tensor) -> list[torch.Tensor]:
    """Return fakes of a score and of the four indices: batch, head, query, key."""
    score = query.new_empty((), requires_grad=query.requires_grad)
    return [score, *(query.new_empty((), dtype=torch.int32) for _ in range(4))]
