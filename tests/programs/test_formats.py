"""Text of values: f-strings, format, %, str and repr, bytes."""

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


@program(A, graphs=0)
def fstrings(a):
    x, s, row, n, w = 3.14159, "hi", [1, 2], 1234567, 10
    return (
        a,
        f"{x:.2f} {x!r} {s!r:>6} {s:^{w}} {n:,} {n:_} {n:#x} {n:b} {-n:+d} {x:e} {x:08.3f} {x:%}",
        f"{row} {row!s:>10} {x=} {s=!s} {True:d} {None} {a.shape} {tuple(a.shape)} {{}} {n:>{w}} {1 + 2j:.1f}",
    )


@program(A, graphs=0)
def fstring_dtype(a):
    return a, f"{a.dtype} {a.device} {a.dim()} {a.shape[0]:>4} {a.size()}"


@program(A, graphs=0)
def fstring_class(a):
    class K:
        def __format__(self, spec):
            return f"K<{spec}>"

        def __str__(self):
            return "str"

        def __repr__(self):
            return "rep"

    k = K()
    return (
        a,
        f"{k} {k:abc} {k!s} {k!r} {[k]} {(k,)} { ({'a': k}) }",
        str(k),
        repr(k),
        "%s %r" % (k, k),
        "{} {!r} {:x}".format(k, k, k),
        format(k, "q"),
        format(k),
    )


@program(A, graphs=0)
def str_methods(a):
    s = "Hello, World"
    return (
        a,
        s.lower(),
        s.upper(),
        s.split(", "),
        s.replace("l", "L"),
        s.find("o"),
        s.rfind("o"),
        s.index("W"),
        s.count("l"),
        s.startswith(("He", "x")),
        s.endswith("d"),
        s.strip("Hd"),
        s.partition(","),
        s.rpartition("o"),
        s.center(20, "*"),
        s.ljust(15),
        s.zfill(15),
        s.title(),
        s.swapcase(),
        s.casefold(),
        s.isalpha(),
        "12".isdigit(),
        "a b".split(),
        "-".join(["a", "b"]),
        "x".join(str(i) for i in range(3)),
        s.encode(),
        "abc".translate(str.maketrans("ab", "xy")),
        s.removeprefix("He"),
        s.removesuffix("ld"),
        s[::-1],
        "l" in s,
        s.expandtabs(),
        "a\nb".splitlines(),
        s.isupper(),
        "%d %s %5.2f %(x)s".__class__.__name__,
        "%d-%s" % (3, "q"),
        "%(k)s" % {"k": 1},
        "{0} {x} {1[0]} {2.real}".format(1, [2], 3, x=4),
        "{:>5}|{:<5}|{:^5}".format(1, 2, 3),
        "a" * 3,
        "a" + "b",
        "a" < "b",
        s.isidentifier(),
        "ß".upper(),
        s.format_map({}),
        ord("a"),
        chr(98),
        ascii("é"),
    )


@program(A, graphs=0)
def str_conv(a):
    return (
        a,
        str(1),
        str(1.0),
        str(None),
        str([1, "a"]),
        str({"a": (1,)}),
        repr("x"),
        str(b"x"),
        int("12"),
        int("ff", 16),
        int(3.9),
        int("0x1f", 0),
        float("1e3"),
        float("inf"),
        bool("x"),
        bytes([1, 2]),
        bytes(3),
        bytes("é", "utf8"),
        str(b"ab", "ascii"),
        complex("1+2j"),
        complex(1, 2),
        list("ab"),
        tuple("ab"),
        set("a"),
        dict([("a", 1)]),
        dict(a=1),
        dict({"b": 2}, c=3),
        int(True),
        float(True),
        hex(255),
        oct(8),
        bin(5),
        round(2.567, 2),
        round(2.5),
        round(3.5),
        divmod(7, -2),
        pow(2, 10),
        pow(2, -1),
        pow(3, 4, 5),
        abs(-3),
        abs(3 + 4j),
        (5).bit_length(),
        (255).to_bytes(2, "big"),
        int.from_bytes(b"\x01\x00", "big"),
        (0.5).as_integer_ratio(),
        (2.0).is_integer(),
        float.fromhex("0x1p3"),
        (3.0).hex(),
        (1 + 2j).conjugate(),
        7 // -2,
        7 % -2,
        -7 // 2,
        2**0.5,
        1 << 5,
        6 & 3,
        6 | 1,
        6 ^ 3,
        ~6,
    )


@program(A, graphs=0)
def str_iter(a):
    return (
        a,
        [c for c in "abc"],
        list(enumerate("ab")),
        dict(zip("ab", [1, 2])),
        "".join(sorted("bca")),
        max("abc"),
        [*"xy"],
        {c: i for i, c in enumerate("xy")},
    )


@program(A, graphs=0)
def repr_object(a):
    class P:
        pass

    return (
        a,
        repr(P).startswith("<class"),
        str(int),
        repr(len),
        str(print)[:10],
        repr(None),
        repr(...),
        repr(range(3)),
        repr(slice(1)),
        repr({1}),
        repr(frozenset()),
        repr(torch.float32),
        repr(a.shape),
        str(torch.device("cpu")),
    )


@program(A, graphs=0)
def print_format_tensor_shape(a):
    return a, "shape {}".format(a.shape), "%s" % (a.shape,), "shape %s" % str(list(a.shape))


@corpus.parametrize()
def test_program(program):
    check(program)
