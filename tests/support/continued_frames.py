"""Chains of frames, handled exceptions and suspended generators, continued under any version of Python.

`python tests/support/continued_frames.py` prints {"python": ..., "checks": ..., "wrong": [...]}: it needs nothing but
the standard library and `plumbline.compiler.bytecode`, so that any interpreter can run it.
"""

import json
import sys
import traceback

from plumbline.compiler.bytecode.handling import run_handling
from plumbline.compiler.bytecode.instruction import decode
from plumbline.compiler.bytecode.kept_generator import new_generator, set_state
from plumbline.compiler.bytecode.resume_chain import Place, make_chain_function
from plumbline.compiler.bytecode.resume_code import HANDLED, VALUE, ResumeLayout


def behind(function, opcode, stack=(), names=(), line=None, drops=False):
    """Return the place behind the first such instruction, on a line of the function if one is given."""
    decoded = decode(function.__code__)
    found = [i for i in decoded.instructions if i.name == opcode]
    if line is not None:
        found = [i for i in found if i.line == function.__code__.co_firstlineno + line]
    return Place(decoded, globals(), ResumeLayout(found[0].index + 1, stack, (), names), drops)


def handled():
    """Return what is being handled, in words."""
    return repr(sys.exc_info()[1])


def divides(a):
    b = len(a)
    return handled(), 10 // b


def handles(a, log):
    try:
        raise ValueError("outer")
    except ValueError:
        got = divides(a)
        log.append(handled())
    log.append(handled())
    return got


def catches(a, log):
    try:
        return divides(a)
    except ZeroDivisionError as error:
        log.append(str(error))
        return "caught"
    finally:
        log.append("finally")


def yields(log, x):
    try:
        for i in (1, 2, 3):
            try:
                got = yield x + i
                log.append(got)
            except ValueError as error:
                log.append(str(error))
                x += 10
    finally:
        log.append("finally")
    return "end"


def yields_in_a_handler(log):
    try:
        raise ValueError("handled")
    except ValueError:
        yield handled()
        log.append(handled())
    yield handled()


def raised_by(call, kind):
    """Return the exception of a call that must raise one; pytest is not available here."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def check_exception_is_handled_without_being_raised():
    error = ValueError("x")
    assert run_handling(error, handled) == "ValueError('x')"
    assert (handled(), error.__traceback__, error.__context__) == ("None", None, None)
    assert raised_by(lambda: run_handling(error, lambda: {}["k"]), KeyError).__context__ is error
    assert handled() == "None"


def check_frames_inside_see_what_a_caller_handles():
    inside = behind(divides, "CALL", (VALUE,))
    run = make_chain_function((inside, behind(handles, "CALL", (HANDLED,), ("log",), line=4)))
    log, error = [], ValueError("outer")
    assert run([(5, error, log)]) == ("ValueError('outer')", 2)
    assert log == ["ValueError('outer')", "None"]
    assert raised_by(lambda: run([(0, error, log)]), ZeroDivisionError).__context__ is error
    assert handled() == "None"


def check_exception_reaches_the_handler_of_a_caller():
    run = make_chain_function((behind(divides, "CALL", (VALUE,)), behind(catches, "CALL", (), ("log",))))
    log = []
    assert run([(0, log)]) == "caught"
    assert run([(2, log)]) == ("None", 5)
    assert log[1:] == ["finally", "finally"]


def check_result_is_dropped_where_the_stack_stands_for_it():
    def makes(x):
        return [x, divides("")]

    place = behind(makes, "CALL", (VALUE, VALUE), drops=True)
    assert make_chain_function((behind(divides, "CALL", (VALUE,)), place))([(5, "x", "made")]) == ["x", "made"]


def suspended(log):
    rest = iter((1, 2, 3))
    next(rest)
    made = new_generator("name", "name")
    set_state(made, behind(yields, "YIELD_VALUE", (VALUE,), ("log", "x")), (rest, log, 5))
    return made


def check_generator_goes_on():
    log = []
    made = suspended(log)
    assert (made.send("sent"), made.throw(ValueError("thrown"))) == (7, 18)
    assert raised_by(lambda: next(made), StopIteration).value == "end"
    assert log == ["sent", "thrown", None, "finally"]


def check_generator_is_closed_where_it_stands():
    log = []
    suspended(log).close()
    assert raised_by(lambda: suspended(log).throw(KeyError("k")), KeyError).__context__ is None
    assert log == ["finally", "finally"]


def check_generator_suspended_in_a_handler():
    log, error = [], ValueError("handled")
    made = new_generator("name", "name")
    set_state(made, behind(yields_in_a_handler, "YIELD_VALUE", (HANDLED,), ("log",)), (error, log))
    assert list(made) == ["None"]
    assert log == ["ValueError('handled')"]


def check_generator_that_raises_stop_iteration():
    def stops():
        yield 1
        raise StopIteration

    made = new_generator("name", "name")
    set_state(made, behind(stops, "YIELD_VALUE"), ())
    assert "StopIteration" in str(raised_by(lambda: next(made), RuntimeError))


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def main():
    """Run every check and print what is wrong."""
    wrong = []
    for name, check in CHECKS.items():
        try:
            check()
        except Exception:
            wrong.append(f"{name}: {traceback.format_exc()}")
    sys.stdout.write(json.dumps({"python": sys.version_info[:2], "checks": len(CHECKS), "wrong": wrong}))


if __name__ == "__main__":
    main()
