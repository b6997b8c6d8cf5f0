"""Rows of the vocabulary that work on each element: arithmetic, comparisons, activations, casts, new tensors."""

from .operator_row import add_rows

_ONE = "abs neg sign square logical_not isnan isfinite isinf isposinf isneginf positive bitwise_not"
_FLOAT_ONE = (
    "sin cos tan tanh sigmoid exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal erf erfc erfinv lgamma digamma "
    "atan asin acos asinh acosh atanh sinh cosh floor ceil trunc frac round deg2rad rad2deg"
)
_ACTIVATIONS = "relu gelu silu mish softplus hardsigmoid leaky_relu logsigmoid softsign tanhshrink hardshrink"
# Their gradients at NaN are one in eager's vectorised loop and another in the rest of the same loop.
_BENT = "elu selu celu hardtanh hardswish relu6"
_NUMBER = "{f}.masked_fill({f}.isnan(), 0.5)"
_TWO = "add sub mul div fmod remainder floor_divide eq ne lt le gt ge"
_EXTREMES = "maximum minimum fmin fmax clamp_min clamp_max"
_FLOAT_TWO = "atan2 hypot nextafter pow logaddexp logaddexp2 xlogy"
_BITS = "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor bitwise_left_shift bitwise_right_shift"

add_rows("pointwise", _ONE, "torch.NAME({x})")
add_rows("pointwise", _FLOAT_ONE, "torch.NAME({f})")
add_rows("pointwise", "sin exp tanh sqrt sigmoid floor round", "torch.NAME({x})", suffix="_of_any")
add_rows("pointwise", "round", "torch.round({f}, decimals={decimals})", suffix="_decimals")
add_rows("pointwise", _ACTIVATIONS, "torch.nn.functional.NAME({f})")
add_rows("pointwise", _BENT, f"torch.nn.functional.NAME({_NUMBER})")
add_rows("pointwise", "elu celu", f"torch.nn.functional.NAME({_NUMBER}, {{pos}})", suffix="_number")
add_rows("pointwise", "softplus", "torch.nn.functional.NAME({f}, {pos})", suffix="_number")
add_rows("pointwise", "leaky_relu hardshrink", "torch.nn.functional.NAME({f}, {k})", suffix="_number")
# The sign of its zeros is one in eager's vectorised loop and another in the rest of the same loop.
add_rows("pointwise", "softshrink", "(torch.nn.functional.softshrink({f}) + 0.0)")
add_rows("pointwise", "softshrink", "(torch.nn.functional.softshrink({f}, {k}) + 0.0)", suffix="_number")
add_rows("pointwise", "threshold", "torch.nn.functional.threshold({x}, {k}, {k2})")
add_rows("pointwise", "gelu", "torch.nn.functional.gelu({f}, approximate='tanh')", suffix="_tanh")
# ATen gives NaN for NaN in the tail of a vector, and 0 within one: which it is depends on the strides of the gradient.
add_rows("pointwise", "logit", "torch.logit(torch.nan_to_num({f}), eps={pos})")
add_rows("binary", _TWO, "torch.NAME({x}, {y})")
add_rows("binary", _FLOAT_TWO, "torch.NAME({f}, {g})")
# Of zeros of both signs eager's vectorised loop takes the second, the rest of the same loop the first.
add_rows("binary", _EXTREMES, "(torch.NAME({x}, {y}) + 0)")
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
    _number = {"pow": "{exponent}", "mod": "{divisor}"}.get(_name, "{k}")
    add_rows("numbers", _name, f"({{x}} {_symbol} {_number})", suffix="_number")
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
add_rows("binary", "clamp", "(torch.clamp({x}, {y}, {z}) + 0)", suffix="_tensors")
add_rows("numbers", "add sub rsub", "torch.NAME({x}, {y}, alpha={k})", suffix="_alpha")
add_rows("numbers", "div", "torch.div({x}, {k}, rounding_mode={rounding})", suffix="_rounding_number")
add_rows("binary", "div", "torch.div({x}, {y}, rounding_mode={rounding})", suffix="_rounding")
add_rows("numbers", "addcmul addcdiv", "torch.NAME({x}, {y}, {z}, value={k})")
add_rows("numbers", "lerp", "torch.lerp({f}, {g}, {k})")
add_rows("binary", "lerp", "torch.lerp({f}, {g}, {h})", suffix="_tensor")
add_rows("numbers", "nan_to_num", "torch.nan_to_num({x}, {k}, {k2})")
add_rows("numbers", "masked_fill", "{x}.masked_fill({b}, {k})")
add_rows("numbers", "float_power", "torch.float_power({x}, {k})")
add_rows("numbers", "copysign", "torch.copysign({x}, min(3.0, {k}))", suffix="_number")

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
add_rows("cast", "view_bits", "{i}.float().view({dtype})", suffix="_of_float")  # bits of what is rounded may differ
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

# Promotion: a tensor of no dimensions, a number and a value of dimensions count differently.
add_rows("binary", "add sub mul", "torch.NAME({x}, {y}.flatten()[0])", suffix="_scalar_value")
add_rows("binary", "zero_dims", "{x} * {y}.flatten()[0] + {y}.flatten()[-1]")
add_rows("numbers", "add_scalar_tensor", "{x} + torch.tensor({k})")
add_rows("numbers", "mul_scalar_tensor", "{x} * torch.tensor({k}, dtype={dtype})")
add_rows("numbers", "where", "torch.where({x} > {k}, {k}, {k2})", suffix="_numbers")
add_rows("numbers", "where", "torch.where({b}, {x}, torch.tensor({k}))", suffix="_scalar_tensor")
add_rows("numbers", "maximum_scalar_tensor", "(torch.maximum({x}, torch.tensor({k})) + 0)")
add_rows("numbers", "pow_scalar_tensor", "torch.pow({x}, torch.tensor({k}))")
add_rows(
    "numbers", "result_type", "torch.empty(0, dtype=torch.result_type({x}, {k})).new_ones({x}.shape)", suffix="_number"
)

# Integers: overflow, division, shifts beyond the width.
add_rows("binary", "gcd lcm", "torch.NAME({i}, {i2})")
add_rows("numbers", "shift_of_number", "({n} << {i})")
add_rows("numbers", "uint8_chain", "({i}.to(torch.uint8) + {n}) * {n2} - 7")
add_rows("numbers", "int8_chain", "-({i}.to(torch.int8) * {n}).abs() // 3")
add_rows("numbers", "int16_chain", "({i}.to(torch.int16) * 300 + {n}) >> 2")
add_rows("binary", "byte_products", "{i}.to(torch.uint8) * {i2}.to(torch.uint8) + {i}.to(torch.int8)")
add_rows("binary", "bool_sums", "{b} + {b2}")
add_rows("binary", "bool_products", "{b} * {y} + {b}")
add_rows("pointwise", "sgn", "torch.sgn({x})")
add_rows("pointwise", "invert", "~{i}")

# Half precision: each operation rounds, so a chain in registers differs from one in memory.
add_rows("cast", "half_chain", "({f}.half() * {k} + {g}.half()).float() * 3")
add_rows("cast", "bfloat16_chain", "(({f}.bfloat16() + {k}) * {f}.bfloat16()).to({fdtype})")
# Which steps are rounded to half precision shows in quotients, remainders and sums with one number.
for _half in ("half", "bfloat16"):
    add_rows("cast", f"{_half}_floordiv", f"({{f}}.{_half}() // {{divisor}})")
    add_rows("cast", f"{_half}_mod", f"({{f}}.{_half}() % {{divisor}})")
    add_rows("cast", f"{_half}_div", f"torch.div({{f}}.{_half}(), {{divisor}}, rounding_mode={{rounding}})")
    add_rows("cast", f"{_half}_trunc", f"torch.div(({{f}} * 100).{_half}(), {{divisor}}, rounding_mode='trunc')")
    add_rows("cast", f"{_half}_sum", f"(({{k}} - {{f}}.{_half}()) * {{k2}})")
add_rows("cast", "half_and_bfloat16", "{f}.half() + {g}.bfloat16()")
add_rows("cast", "half_mean", "{f}.half().mean() + {f}.bfloat16().sum()")
add_rows("cast", "chain_of_casts", "{f}.to({fdtype}).to({fdtype2}).add({k}).to({f}.dtype)")

add_rows("pointwise", "i0 i1 i0e erfcx ndtr log_ndtr entr sinc", "torch.special.NAME({f})")
add_rows("binary", "xlog1py", "torch.special.xlog1py({f}, {g})")
add_rows("pointwise", "polygamma", "torch.polygamma(1, {f})")
add_rows("pointwise", "frexp", "torch.frexp({f})", results=2)
add_rows("pointwise", "hardtanh relu6", f"torch.nn.functional.NAME({_NUMBER}, inplace=False)", suffix="_keyword")
add_rows("pointwise", "rrelu", "torch.nn.functional.rrelu({f}, inplace=False)", suffix="_keyword")
add_rows("pointwise", "softplus", "torch.nn.functional.softplus({f}, beta={k}, threshold={k2})", suffix="_threshold")
add_rows("pointwise", "elu", f"torch.nn.functional.elu({_NUMBER}, alpha={{k}})", suffix="_alpha")
add_rows("pointwise", "bernoulli_of_limits", "torch.bernoulli(({f} > 0).to({f}.dtype))", draws=True)
add_rows("creation", "arange", "torch.arange({n}, {n2}, dtype={dtype})", suffix="_numbers")
add_rows("creation", "logspace", "torch.logspace(0.0, 2.0, {window})")
add_rows("creation", "empty_nothing", "torch.empty(0, dtype={dtype})")
add_rows("creation", "ones_of_size", "torch.ones({x}.size(-1), {x}.dim())")
add_rows("creation", "hann_window", "torch.hann_window({x}.numel())")
add_rows("random", "alpha_dropout feature_alpha_dropout", "torch.nn.functional.NAME({f}, 0.4, True)", draws=True)
add_rows("random", "randperm", "torch.randperm({x}.numel())", draws=True)
add_rows("random", "multinomial", "torch.multinomial(torch.rand(3, 5), 4, replacement={flag})", draws=True)
add_rows("random", "normal", "torch.normal({f}, 2.0)", draws=True)
add_rows("random", "poisson", "torch.poisson(torch.rand({x}.shape) * 4)", draws=True)
add_rows("random", "randint_like", "torch.randint_like({x}, 7)", draws=True)
add_rows("random", "randn", "torch.randn({x}.shape) + torch.rand({x}.shape)", draws=True)
add_rows("random", "gumbel", "torch.nn.functional.gumbel_softmax({f}, dim=-1)", draws=True)
add_rows("random", "uniform_ normal_ exponential_", "{f}.NAME()", draws=True)
add_rows("random", "random_ bernoulli_", "{x}.NAME()", draws=True)
