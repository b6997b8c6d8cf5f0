"""A case run until its first failing call: a plain script, or one test of a pytest suite by node id."""

import contextlib
import io
import os
import runpy
import sys
import traceback
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.state.scope import seed_everything

from .failing_calls import FailureFound, FailureSession


def check_case(case: str) -> None:
    """Raise UserError unless the case names a Python file (and maybe a test in it) that exists."""
    file = Path(case.split("::")[0])
    hint = "give a Python script, or a pytest node id like tests/test_x.py::test_y"
    if not file.exists():
        raise UserError("no such file", where=str(file), hint=hint)
    if file.is_dir() or file.suffix != ".py":
        raise UserError("is not a Python file", where=str(file), hint=hint)
    if not os.access(file, os.R_OK):
        raise UserError("cannot be read", where=str(file), hint="check its permissions")


def split_variant(node_id: str) -> tuple[str, str | None, str | None]:
    """Return (node id without the variant, compiler, backend) for ids as the plugin prints them.

    `test_y[torch:inductor]` and `test_y[3-torch:inductor]` name a variant; other brackets are the test's own.
    """
    head, bracket, inside = node_id.partition("[")
    parts = inside.removesuffix("]").split("-") if bracket else []
    named = [part for part in parts if part.count(":") == 1 and part.split(":")[0] in ("torch", "plumbline")]
    if len(named) != 1:
        return node_id, None, None
    compiler, backend = named[0].split(":")
    rest = "-".join(part for part in parts if part != named[0])
    return f"{head}[{rest}]" if rest else head, compiler, backend


def run_script(path: str, session: FailureSession) -> None:
    """Run a script as `python path` would, inside the session, up to its first failing call.

    Raises UserError when the script fails by itself.
    """
    before = sys.argv, sys.path
    sys.argv, sys.path = [path], [str(Path(path).resolve().parent), *sys.path]
    seed_everything(0)
    try:
        with session, contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(path, run_name="__main__")
    except FailureFound:
        pass
    except SystemExit as ending:
        if session.failure is None and ending.code not in (None, 0):
            raise _own_fault(path, ending) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if session.failure is None:
            raise _own_fault(path, error) from None
    finally:
        sys.argv, sys.path = before


def _own_fault(path: str, error: BaseException) -> UserError:
    """Return the error for a script that fails without any compiler, at the innermost of its own lines."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).resolve() == Path(path).resolve()]
    line = own[-1].lineno if own else getattr(error, "lineno", None)
    text = next((part for part in str(error).splitlines() if part.strip()), "")
    where = f"{path}:{line}" if line else path
    what = f"the script fails by itself: {type(error).__name__}{': ' + text[:200] if text else ''}"
    return UserError(what, where=where, hint=f"make `python {path}` run first")


class _OneTest:
    """A pytest plugin that runs the body of the one selected test inside the session."""

    def __init__(self, session: FailureSession) -> None:
        self.session = session
        self.ran = 0
        self.own: BaseException | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Seed as the judging plugin does: by the node id without the variant."""
        seed_everything(zlib.crc32(item.nodeid.encode("utf-8", "surrogatepass")))
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Judge what the test calls; the first failing call ends it."""
        self.ran += 1
        seed_everything(zlib.crc32(item.nodeid.encode("utf-8", "surrogatepass")))
        try:
            with self.session:
                return (yield)
        except FailureFound:
            pytest.skip("minified")
        except Exception as error:
            self.own = error
            raise


def run_node(node_id: str, session: FailureSession) -> None:
    """Run one test, inside the session, up to its first failing call.

    Raises UserError when the id selects no test, several, or one that fails by itself.
    """
    one = _OneTest(session)
    output = io.StringIO()
    # faulthandler: this is a fork, in which a watchdog of the run outside cannot be stopped
    without = [word for name in ("cacheprovider", "randomly", "xdist", "faulthandler") for word in ("-p", f"no:{name}")]
    arguments = [node_id, "-q", "-s", *without, "--no-header"]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = pytest.main(arguments, plugins=[one])
    if session.failure is not None:
        return
    if one.ran == 0:
        said = [line for line in output.getvalue().splitlines() if line.startswith(("E ", "ERROR"))]
        why = said[0].removeprefix("E ").strip() if said else f"pytest ends with status {int(status)}"
        raise UserError("no test was run", where=node_id, why=why, hint=f"make `pytest {node_id}` run first")
    if one.ran > 1:
        raise UserError(f"selects {one.ran} tests", where=node_id, hint="name one test, with its parameters")
    if one.own is not None:
        text = next((part for part in str(one.own).splitlines() if part.strip()), "")
        what = f"the test fails by itself: {type(one.own).__name__}: {text[:200]}"
        raise UserError(what, where=node_id, hint=f"make `pytest {node_id}` pass first")
