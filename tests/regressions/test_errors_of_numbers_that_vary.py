"""What a function raised for the numbers of one call, it raised for the numbers of other calls, too.

A number that has changed between calls is a symbol. Functions of symbols that raise for some numbers, or give a number
of another kind (`n ** 0.5`), were evaluated for those of the first call, without a guard.
"""

import pytest

import plumbline

TEXTS = (
    "math.sqrt(-n)", "math.sqrt(n - 2)", "math.sqrt(n * 0.5 - 1)", "math.log(n)", "math.factorial(n)", "1 / n",
    "7 // n", "7 % n", "n % -3", "n % 2.5", "divmod(7, n)", "divmod(n * 0.3, n + 1)",
    "[1, 2, 3][n]", "chr(n)", "bytes(n)",
    "list(range(0, 3, n))", "2 ** -n", "0 ** n", "n ** -1", "n ** 2", "n ** 0.5", "n ** -0.5", "(-2) ** n", "n ** n",
    "math.acos(n)", "1 << n", "16 >> n", "n & 5", "~n", "int(1e308 * n)", "round(1e308 * n)", "math.pow(-1, n / 2)",
    "pow(2, 3, n)", "int('11', n)", "shifted(n)",
)  # fmt: skip
NUMBERS = (2, 3, 0, -1, 1, -4)


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_that_vary_give_what_python_gives(text):
    program = f"""
import math
def shifted(n):
    n <<= 1
    return n
def step(n):
    try:
        return {text}
    except Exception as error:
        return type(error), str(error)
"""
    scope = {}
    exec(program, scope)
    for kind in (int, float):
        for numbers in (NUMBERS, NUMBERS[::-1]):
            compiled = plumbline.compile(scope["step"], backend="eager")
            for number in map(kind, numbers):
                assert repr(compiled(number)) == repr(scope["step"](number)), number


def test_numbers_too_large_for_floats_are_no_symbols():
    def step(n):
        try:
            return float(n)
        except OverflowError as error:
            return str(error)

    compiled = plumbline.compile(step, backend="eager")
    for number in (1, 2, 10**400, 3):
        assert compiled(number) == step(number)
