"""Graphs as plain data: nodes by number, with what they call and on what; metadata and names of users are left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, GetSetDescriptorType, MethodDescriptorType

import torch
from torch import fx

from ..base.torch_facts import lazy_module
from .plain_data import NotPlain, Plain, is_library_code, plain_value, value_of_plain


def plain_graph(gm: fx.GraphModule) -> Plain:
    """Return the plain form of a graph; raises NotPlain for one that holds tensors, modules or code of the user's."""
    numbers = {node: str(number) for number, node in enumerate(gm.graph.nodes)}

    def number(node: object) -> str:
        assert isinstance(node, fx.Node)
        return numbers[node]

    return tuple(_plain_node(node, number) for node in gm.graph.nodes)


def graph_of_plain(form: Plain) -> fx.GraphModule:
    """Return the graph of a plain form, which runs operator by operator; its nodes have no example values."""
    graph = fx.Graph()
    nodes: dict[str, fx.Node] = {}
    for number, (kind, target, args, kwargs) in enumerate(form):
        name = f"{kind}_{number}"
        place = name if kind == "placeholder" else value_of_plain(target)
        node = graph.create_node(kind, place, name=name)
        node.args = value_of_plain(args, nodes.__getitem__)
        node.kwargs = value_of_plain(kwargs, nodes.__getitem__)
        nodes[str(number)] = node
    return lazy_module({}, graph)


def _plain_node(node: fx.Node, number: Callable[[object], str]) -> Plain:
    args, kwargs = plain_value(tuple(node.args), number), plain_value(dict(node.kwargs), number)
    if node.op in ("placeholder", "output"):
        target: Plain = ""
    elif node.op == "call_method":
        target = _plain_method(str(node.target))
    elif node.op == "call_function":
        target = plain_value(node.target)
    else:
        raise NotPlain(f"a graph that holds {node.target!r}, a tensor or a module")
    return node.op, target, args, kwargs


def _plain_method(name: str) -> Plain:
    """Return a method of tensors by name; raises NotPlain for one that is not torch's."""
    method = inspect.getattr_static(torch.Tensor, name, None)
    if isinstance(method, MethodDescriptorType | GetSetDescriptorType) or _is_torchs(method):
        return name
    raise NotPlain(f"the method {name}, which is not torch's")


def _is_torchs(method: object) -> bool:
    return isinstance(method, FunctionType) and is_library_code(method)
