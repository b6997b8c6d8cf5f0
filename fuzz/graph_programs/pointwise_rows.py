"""Rows of the vocabulary that work on each element: arithmetic, comparisons, activations, casts, new tensors."""

from .operator_row import add_rows

_ONE = "abs neg sign square logical_not isnan isfinite isinf isposinf isneginf positive bitwise_not"
_FLOAT_ONE = (
    "sin cos tan tanh sigmoid exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal erf erfc erfinv lgamma digamma "
    "atan asin acos asinh acosh atanh sinh cosh floor ceil trunc frac round deg2rad rad2deg"
)
_ACTIVATIONS = (
    "relu gelu silu mish softplus elu selu celu hardtanh hardswish hardsigmoid leaky_relu relu6 logsigmoid softsign "
    "tanhshrink softshrink hardshrink"
)
_TWO = "add sub mul div maximum minimum fmin fmax fmod remainder floor_divide eq ne lt le gt ge"
_FLOAT_TWO = "atan2 hypot nextafter pow logaddexp logaddexp2 xlogy"
_BITS = "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor bitwise_left_shift bitwise_right_shift"

add_rows("pointwise", _ONE, "torch.NAME({x})")
add_rows("pointwise", _FLOAT_ONE, "torch.NAME({f})")
add_rows("pointwise", "sin exp tanh sqrt sigmoid floor round", "torch.NAME({x})", suffix="_of_any")
add_rows("pointwise", "round", "torch.round({f}, decimals={decimals})", suffix="_decimals")
add_rows("pointwise", _ACTIVATIONS, "torch.nn.functional.NAME({f})")
add_rows("pointwise", "elu celu softplus", "torch.nn.functional.NAME({f}, {pos})", suffix="_number")
add_rows("pointwise", "leaky_relu softshrink hardshrink", "torch.nn.functional.NAME({f}, {k})", suffix="_number")
add_rows("pointwise", "threshold", "torch.nn.functional.threshold({x}, {k}, {k2})")
add_rows("pointwise", "gelu", "torch.nn.functional.gelu({f}, approximate='tanh')", suffix="_tanh")
add_rows("pointwise", "logit", "torch.logit({f}, eps={pos})")
add_rows("binary", _TWO, "torch.NAME({x}, {y})")
add_rows("binary", _FLOAT_TWO, "torch.NAME({f}, {g})")
add_rows("binary", _BITS, "torch.NAME({i}, {y})")
# The sign and the payload of a NaN are nobody's promise.
add_rows("pointwise", "signbit", "torch.signbit(torch.nan_to_num({x}))")
add_rows("binary", "copysign", "torch.copysign({f}, torch.nan_to_num({g}))")
add_rows("binary", "pow", "torch.pow({x}, {y})", suffix="_of_any")
add_rows("binary", "heaviside", "torch.heaviside({x}, {y})")
add_rows("binary", "ldexp", "torch.ldexp({f}, {i})")
add_rows("binary", "isclose", "torch.isclose({x}, {y}, equal_nan={flag})")
for _symbol, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "div"), ("//", "floordiv"), ("%", "mod"),
                       ("**", "pow"), ("<", "lt"), ("==", "eq"), (">=", "ge")):  # fmt: skip
    add_rows("numbers", _name, f"({{x}} {_symbol} {{k}})", suffix="_number")
    add_rows("numbers", _name, f"({{k}} {_symbol} {{x}})", suffix="_reversed")
for _symbol, _name in (("&", "and"), ("|", "or"), ("^", "xor"), ("<<", "lshift"), (">>", "rshift")):
    add_rows("numbers", _name, f"({{i}} {_symbol} {{n}})", suffix="_number")
    add_rows("binary", _name, f"({{i}} {_symbol} {{y}})", suffix="_values")
add_rows("binary", "where", "torch.where({b}, {x}, {y})")
add_rows("binary", "where", "torch.where({x} > {k}, {x}, {y})", suffix="_greater")
add_rows("numbers", "where", "torch.where({b}, {x}, {k})", suffix="_number")
add_rows("numbers", "where", "torch.where({b}, {k}, {x})", suffix="_reversed")
add_rows("numbers", "clamp", "torch.clamp({x}, {k}, {k2})")
add_rows("numbers", "clamp", "torch.clamp({x}, min={k})", suffix="_low")
add_rows("numbers", "clamp", "torch.clamp({x}, max={k})", suffix="_high")
add_rows("binary", "clamp", "torch.clamp({x}, {y}, {z})", suffix="_tensors")
add_rows("binary", "clamp_min clamp_max", "torch.NAME({x}, {y})")
add_rows("numbers", "add sub rsub", "torch.NAME({x}, {y}, alpha={k})", suffix="_alpha")
add_rows("numbers", "div", "torch.div({x}, {k}, rounding_mode={rounding})", suffix="_rounding_number")
add_rows("binary", "div", "torch.div({x}, {y}, rounding_mode={rounding})", suffix="_rounding")
add_rows("numbers", "addcmul addcdiv", "torch.NAME({x}, {y}, {z}, value={k})")
add_rows("numbers", "lerp", "torch.lerp({f}, {g}, {k})")
add_rows("binary", "lerp", "torch.lerp({f}, {g}, {h})", suffix="_tensor")
add_rows("numbers", "nan_to_num", "torch.nan_to_num({x}, {k}, {k2})")
add_rows("numbers", "masked_fill", "{x}.masked_fill({b}, {k})")
add_rows("numbers", "float_power", "torch.float_power({x}, {k})")
add_rows("numbers", "copysign", "torch.copysign({x}, {k})", suffix="_number")

# Neutral elements: the result is equal to the operand and must not be the operand.
add_rows("neutral", "add_zeros", "{x} + torch.zeros_like({x})")
add_rows("neutral", "mul_ones", "torch.ones_like({x}) * {x}")
add_rows("neutral", "add_zero", "{x} + 0")
add_rows("neutral", "sub_zero", "{x} - 0")
add_rows("neutral", "mul_one", "{x} * 1")
add_rows("neutral", "div_one", "{x} / 1")
add_rows("neutral", "mul_zero", "{x} * 0")
add_rows("neutral", "pow_one", "{x} ** 1")
add_rows("neutral", "double_neg", "-(-{x})")
add_rows("neutral", "clone", "{x}.clone()")
add_rows("neutral", "contiguous", "{x}.contiguous()")
add_rows("neutral", "same_dtype", "{x}.to({x}.dtype)")
add_rows("neutral", "copying_cast", "{x}.to({x}.dtype, copy=True)")
add_rows("neutral", "cat_one", "torch.cat([{x}])")
add_rows("neutral", "dropout_eval", "torch.nn.functional.dropout({f}, 0.5, False)")
add_rows("neutral", "pad_nothing", "torch.nn.functional.pad({x}, [0, 0])")

add_rows("cast", "to", "{x}.to({fdtype})")
add_rows("cast", "to", "{x}.bool()", suffix="_bool")
add_rows("cast", "to", "{i}.to({idtype})", suffix="_integer")
add_rows("cast", "to", "torch.nan_to_num({f}).clamp(0, 100).to({idtype})", suffix="_whole")
add_rows("cast", "to", "torch.nan_to_num({f}).clamp(-100, 100).to(torch.int8)", suffix="_int8")
add_rows("cast", "to", "{f}.to({fdtype}).to({fdtype2})", suffix="_twice")
add_rows("cast", "to", "{b}.to({dtype})", suffix="_of_bool")
add_rows("cast", "type_as", "{i}.type_as({y})")
add_rows("cast", "view_bits", "{i}.view({idtype})")
add_rows("cast", "view_bits", "torch.nan_to_num({f}).view({dtype})", suffix="_of_float")
add_rows("cast", "result_type", "{x}.to(torch.promote_types({x}.dtype, {y}.dtype))")
add_rows("cast", "complex", "torch.complex({f}.float(), {g}.float())")
add_rows("cast", "real imag", "torch.view_as_complex(torch.stack([{f}, {f}], -1)).NAME")
add_rows("cast", "conj", "{x}.conj()")

add_rows("creation", "zeros_like ones_like", "torch.NAME({x})")
add_rows("creation", "full_like", "torch.full_like({x}, {k})")
add_rows("creation", "full", "torch.full(tuple({x}.shape), {k}, dtype={x}.dtype)")
add_rows("creation", "new_zeros", "{x}.new_zeros({x}.shape)")
add_rows("creation", "new_full", "{x}.new_full((2,), {k})")
add_rows("creation", "arange", "torch.arange({x}.numel(), dtype={dtype})")
add_rows("creation", "arange", "torch.arange({k}, {x}.numel() + {k}, dtype=torch.float32)", suffix="_from")
add_rows("creation", "linspace", "torch.linspace({k}, 3.0, {x}.numel())")
add_rows("creation", "eye", "torch.eye({window}, dtype={x}.dtype)")
add_rows("creation", "tensor", "torch.tensor([{k}, {k2}])")
add_rows("creation", "scalar_tensor", "torch.tensor({k}, dtype={x}.dtype)")
add_rows("creation", "empty_filled", "torch.empty_like({x}).fill_({k})")
add_rows("random", "randn_like rand_like", "torch.NAME({f})", draws=True)
add_rows("random", "dropout", "torch.nn.functional.dropout({f}, 0.5)", draws=True)
add_rows("random", "bernoulli", "torch.bernoulli(torch.sigmoid({f}))", draws=True)
add_rows("random", "randint", "torch.randint(0, 5, tuple({x}.shape))", draws=True)
