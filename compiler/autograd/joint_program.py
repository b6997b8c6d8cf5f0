"""A torch-level graph with what it is specialised to: what there is before anything is traced."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from ..base.bisecting.applications import Gate
from ..base.torch_facts import OpOverload, quiet_fake_failures
from ..graph.graph_interpreter import interpreted
from ..graph.subgraphs.autocast_at import AutocastState, autocast_as
from ..graph.subgraphs.subgraph_operator import BodyCompiler, compiled_by
from ..graph.tracer import Decomposition, TensorMetadata, metadata_of
from .dynamic_arguments import NOTHING_DYNAMIC, DynamicArguments


@dataclass(frozen=True, slots=True)
class JointProgram:
    """A torch-level graph with the arguments it is specialised to, and how to trace it.

    arguments: numbers as they are, for a tensor its metadata; the same tensor given twice is the same object here.
    grad_enabled, autocast: the state of the call.  keeps_recorded: whether a trace keeps what it recorded.
    gate: asked for each decomposition.  bodies: compiles what calls with subgraphs run.
    """

    gm: fx.GraphModule
    arguments: tuple[object, ...]
    grad_enabled: bool
    autocast: AutocastState = ()  # the devices where it is on, with its dtype there
    decompositions: Mapping[OpOverload, Decomposition] | None = None
    dynamic: DynamicArguments = NOTHING_DYNAMIC
    sizes: tuple[float, ...] = ()  # those of the call, in the order of dynamic.labels
    keeps_recorded: bool = False
    gate: Gate | None = None
    bodies: BodyCompiler = field(default_factory=lambda: BodyCompiler(interpreted), compare=False)

    @staticmethod
    def metadata(arguments: Sequence[object], dynamic: DynamicArguments = NOTHING_DYNAMIC) -> tuple[object, ...]:
        """Return the arguments with each tensor replaced by its metadata; raises Unsupported for odd tensors."""
        seen: dict[int, TensorMetadata] = {}
        for position, value in enumerate(arguments):
            if isinstance(value, torch.Tensor) and id(value) not in seen:
                metadata = metadata_of(value)
                if position in dynamic.tensors:
                    metadata = replace(metadata, labels=dynamic.tensors[position])
                seen[id(value)] = metadata
        return tuple(seen[id(value)] if isinstance(value, torch.Tensor) else value for value in arguments)

    def state(self) -> ExitStack:
        """Return a context with the grad mode and autocast state of the call; inference mode is traced as no_grad."""
        stack = ExitStack()
        stack.enter_context(quiet_fake_failures())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.set_grad_enabled(self.grad_enabled))
        stack.enter_context(autocast_as(self.autocast))
        return stack

    def tracing_state(self) -> ExitStack:
        """Return `state` where the program is traced: its calls with subgraphs become calls of an operator."""
        stack = self.state()
        stack.enter_context(compiled_by(self.bodies))
        return stack
