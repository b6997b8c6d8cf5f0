"""The operators of generated programs: how each is written, what it takes, and which attributes are drawn.

An operator is a text with places: `{0}`, `{1}` are earlier values, `{name}` are attributes chosen to fit the first one.
Whether operands go together is asked of torch itself, on meta tensors; nothing here repeats shape rules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch

Attribute = int | bool | float | tuple[int, ...]
Choose = Callable[[torch.Tensor], Sequence[Attribute] | None]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of the vocabulary.

    name: how programs as data call it.  text: how it is written.  takes: the kind of each operand ("float", "int",
    "bool", "number", "any", or "fresh" for a float that may be written in place).
    attributes: name -> what it may be, given the first operand (None: the operator does not fit).
    statement: the text changes its first operand and is written as a statement.
    """

    name: str
    text: str
    takes: tuple[str, ...]
    attributes: tuple[tuple[str, Choose], ...] = ()
    statement: bool = False

    def written(self, operands: tuple[str, ...], chosen: dict[str, Attribute]) -> str:
        """Return the call as Python."""
        return self.text.format(*operands, **{name: repr(value) for name, value in chosen.items()})


VOCABULARY: dict[str, Operator] = {}


def _add(
    names: str, text: str, takes: str, attributes: dict[str, Choose] | None = None, *, statement: bool = False
) -> None:
    for name in names.split():
        VOCABULARY[name] = Operator(
            name, text.replace("NAME", name), tuple(takes.split()), tuple((attributes or {}).items()), statement
        )


# -- attributes that fit an operand ------------------------------------------------------------------------------------


def _dim(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    dims = tensor.dim()
    return [*range(dims), *range(-dims, 0)] if dims else None


def _filled_dim(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    dims = [dim for dim in range(tensor.dim()) if tensor.shape[dim]]
    return dims + [dim - tensor.dim() for dim in dims] if dims else None


def _new_dim(tensor: torch.Tensor) -> Sequence[Attribute]:
    return [*range(tensor.dim() + 1), -1]


def _order(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    return list(permutations(range(tensor.dim()))) if tensor.dim() else None


def _view_shape(tensor: torch.Tensor) -> Sequence[Attribute]:
    shape = tuple(tensor.shape)
    options: list[Attribute] = [(tensor.numel(),), (1, *shape), (*shape, 1)]
    if len(shape) > 1:
        options += [(shape[0] * shape[1], *shape[2:]), (*shape[1:], shape[0])]
    if shape and shape[-1] % 2 == 0 and shape[-1]:
        options.append((*shape[:-1], shape[-1] // 2, 2))
    return options


def _last_shape(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    return ((tensor.shape[-1],),) if tensor.dim() and tensor.shape[-1] else None


def _last_index(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    size = tensor.shape[-1] if tensor.dim() else 0
    return [0, size - 1, -1] if size else None


def _sizes_to_expand(tensor: torch.Tensor) -> Sequence[Attribute]:
    return [(size, *tensor.shape) for size in (2, 3, 1)]


def _small(tensor: torch.Tensor) -> Sequence[Attribute]:
    del tensor
    return [1, -1, 2, 0]


def _flag(tensor: torch.Tensor) -> Sequence[Attribute]:
    del tensor
    return (False, True)


def _zero(tensor: torch.Tensor) -> Sequence[Attribute]:
    del tensor
    return (0,)


def _has_dims(tensor: torch.Tensor) -> Sequence[Attribute] | None:
    """Say that the operator needs a dimension; the text does not use the value."""
    return (0,) if tensor.dim() else None


def _factor(tensor: torch.Tensor) -> Sequence[Attribute]:
    del tensor
    return [2.0, -0.5, 0.0, 3, 1e-3]


# -- pointwise ---------------------------------------------------------------------------------------------------------

_add("sin cos tanh sigmoid exp expm1 atan erf neg reciprocal square", "torch.NAME({0})", "float")
_add("abs sign", "torch.NAME({0})", "number")
_add("floor ceil round trunc", "torch.NAME({0})", "float")
_add("relu", "torch.relu({0})", "number")
_add("sqrt log1p rsqrt", "torch.NAME(torch.abs({0}))", "float")
_add("gelu silu softplus hardtanh", "torch.nn.functional.NAME({0})", "float")
_add("leaky_relu", "torch.nn.functional.leaky_relu({0}, 0.1)", "float")
_add("clamp", "torch.clamp({0}, -0.5, 1.0)", "float")
_add("nan_to_num", "torch.nan_to_num({0})", "float")
_add("add sub mul maximum minimum", "torch.NAME({0}, {1})", "number number")
_add("div atan2 hypot fmod remainder", "torch.NAME({0}, {1})", "float float")
_add("floor_divide", "torch.div({0}, {1}, rounding_mode='floor')", "float float")
_add("pow", "torch.pow(torch.abs({0}) + 0.5, {1})", "float float")
_add("scale", "{0} * {factor}", "float", {"factor": _factor})
_add("rsub", "{factor} - {0}", "float", {"factor": _factor})
_add("lerp", "torch.lerp({0}, {1}, 0.25)", "float float")
_add("lt eq ge", "torch.NAME({0}, {1})", "number number")
_add("where", "torch.where({0}, {1}, {2})", "bool float float")
_add("where_positive", "torch.where({0} > 0, {0}, {1})", "float float")
_add("logical_not", "torch.logical_not({0})", "any")
_add("to_float", "{0}.to(torch.float32)", "any")
_add("to_double", "{0}.to(torch.float64)", "any")

# -- reductions and scans ----------------------------------------------------------------------------------------------

_add("sum mean", "torch.NAME({0}, dim={dim}, keepdim={keepdim})", "float", {"dim": _dim, "keepdim": _flag})
_add("sum_all", "torch.sum({0})", "number")
_add("amax amin", "torch.NAME({0}, dim={dim}, keepdim={keepdim})", "float", {"dim": _filled_dim, "keepdim": _flag})
_add("logsumexp", "torch.logsumexp({0}, dim={dim})", "float", {"dim": _dim})
_add("var", "torch.var({0}, dim={dim}, correction=0)", "float", {"dim": _filled_dim})
_add("prod", "torch.prod({0}, dim={dim})", "float", {"dim": _filled_dim})
_add("norm", "torch.linalg.vector_norm({0} , dim={dim})", "float", {"dim": _filled_dim})
_add("argmax", "torch.argmax({0}, dim={dim})", "float", {"dim": _filled_dim})
_add("max", "torch.max({0}, dim={dim})[0]", "float", {"dim": _filled_dim})
_add("cumsum cumprod", "torch.NAME({0}, dim={dim})", "float", {"dim": _dim})
_add("softmax log_softmax", "torch.NAME({0}, dim={dim})", "float", {"dim": _dim})
_add("layer_norm", "torch.nn.functional.layer_norm({0}, {shape})", "float", {"shape": _last_shape})
_add("sort", "torch.sort({0}, dim={dim}, stable=True)[0]", "float", {"dim": _dim})

# -- views and movement ------------------------------------------------------------------------------------------------

_add("reshape", "{0}.reshape({shape})", "any", {"shape": _view_shape})
_add("transpose", "{0}.transpose({first}, {second})", "any", {"first": _dim, "second": _dim})
_add("permute", "{0}.permute({order})", "any", {"order": _order})
_add("unsqueeze", "{0}.unsqueeze({dim})", "any", {"dim": _new_dim})
_add("squeeze", "{0}.squeeze({dim})", "any", {"dim": _dim})
_add("expand", "{0}.expand({shape})", "any", {"shape": _sizes_to_expand})
_add("select", "{0}[..., {index}]", "any", {"index": _last_index})
_add("slice_tail", "{0}[1:]", "any", {"fits": _has_dims})
_add("slice_step", "{0}[..., ::2]", "any", {"fits": _has_dims})
_add("diagonal", "torch.diagonal({0})", "any")
_add("contiguous", "{0}.contiguous()", "any")
_add("flip", "torch.flip({0}, ({dim},))", "any", {"dim": _dim})
_add("roll", "torch.roll({0}, {shift}, {dim})", "any", {"shift": _small, "dim": _dim})
_add("tril triu", "torch.NAME({0}, {offset})", "number", {"offset": _small})
_add("pad", "torch.nn.functional.pad({0}, (1, 2))", "float", {"fits": _has_dims})
_add("cat", "torch.cat([{0}, {1}], dim={dim})", "float float", {"dim": _dim})
_add("stack", "torch.stack([{0}, {1}], dim={dim})", "float float", {"dim": _new_dim})
_add("second_chunk", "torch.chunk({0}, 2, dim={dim})[-1]", "any", {"dim": _filled_dim})
_add("repeat", "torch.cat([{0}] * 2, dim={dim})", "any", {"dim": _dim})
_add(
    "index_select",
    "torch.index_select({0}, {dim}, torch.tensor([{index}, 0]))",
    "float",
    {"dim": _filled_dim, "index": _zero},
)
_add(
    "gather_max",
    "torch.gather({0}, {dim}, torch.argmax({0}, dim={dim}, keepdim=True))",
    "float",
    {"dim": _filled_dim},
)

# -- products ----------------------------------------------------------------------------------------------------------

_add("matmul", "torch.matmul({0}, {1})", "float float")
_add("matmul_transposed", "torch.matmul({0}, {1}.transpose(-1, -2))", "float float")
_add("outer", "{0}.unsqueeze(-1) * {1}.unsqueeze(-2)", "float float")
_add("linear", "torch.nn.functional.linear({0}, {1})", "float float")
_add("einsum_last", "torch.einsum('...i,...i->...', {0}, {1})", "float float")

# -- in place on fresh tensors -----------------------------------------------------------------------------------------

_add("clone", "{0}.clone()", "float")
_add("add_ mul_ sub_", "{0}.NAME({1})", "fresh float", statement=True)
_add("relu_ neg_ sin_ zero_", "{0}.NAME()", "fresh", statement=True)
_add("clamp_", "{0}.clamp_(-1.0, 1.0)", "fresh", statement=True)
_add("transposed_add_", "{0}.transpose(0, -1).add_({1})", "fresh float", statement=True)
_add(
    "set_last",
    "{0}[..., {index}] = {factor}",
    "fresh",
    {"index": _last_index, "factor": _factor},
    statement=True,
)
_add(
    "scale_tail",
    "{0}[1:].mul_({factor})",
    "fresh",
    {"factor": _factor, "fits": _has_dims},
    statement=True,
)
