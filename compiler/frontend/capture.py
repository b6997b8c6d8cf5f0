"""capture(unit, arguments): evaluate the unit's code once and write the specialisation that runs from then on."""

import ast
from dataclasses import dataclass

import torch

from ..base.errors import Unsupported, UserError
from ..base.events import (
    Broke,
    RanEagerly,
    record,
    stage,
)
from ..base.noted_warnings import noted_warnings
from ..base.torch_facts import hidden_tensor_hooks, quiet_fake_runs, set_grad_mode
from ..bytecode.handling import run_handling
from ..graph.effects.shared_generator import kept_generators
from ..values.guard import Guard
from ..values.python.objects.attributes import lookups_guarded
from ..values.reasons import (
    CALLEE_BREAKS,
    CANNOT_RESUME,
    EXCEPTION,
    FUNCTION_MODE,
    UNSUPPORTED_TENSOR,
    Break,
    SkipFrame,
)
from ..values.torch.modules import Uninitialised
from ..values.torch.optimizer_state import UnstartedOptimizer
from ..values.torch.overrides.override_facts import MODES_ASIDE
from ..values.traces import add_callers
from ..values.value import Raised
from .breaks.chain import frames_of, places_to_stop
from .breaks.later_code import asked_later, sees_steps
from .breaks.operations import Branch, Operation, operation_at
from .context.assumptions import AssumedInVain, leaves_no_trace
from .context.attempt import CaptureAttempt
from .context.frame import FrameState, handled_in
from .context.lifetimes import watched_by
from .context.recorder import Recorder
from .context.torch_state import state_kept_when_interrupted
from .evaluate import StopAtBreak, run_chain, run_frame
from .generators import make_generator
from .guards.generated_function import parsed
from .left_to_numpy import left_to_numpy
from .specialise import BackendError, SpecialisationWriter, eager_specialisation
from .units.failure import report_failure
from .units.unit import Specialisation, Unit
from .warmed_packages import warm_packages


def capture_unit(unit: Unit, args: tuple[object, ...]) -> Specialisation:
    """Return a specialisation that fits the arguments.

    What cannot be captured becomes one that runs the original code, under the guards seen so far: evaluation is
    deterministic in what they guard. Raises Unsupported if the family demands a full graph.
    """
    warm_packages()
    lazy: Uninitialised | UnstartedOptimizer | None = None
    failed: BaseException | None = None
    try:
        with (
            state_kept_when_interrupted(),
            stage("capture"),
            kept_generators(),
            quiet_fake_runs(),
            hidden_tensor_hooks(),
        ):
            return _capture(unit, args)
    except (Uninitialised, UnstartedOptimizer) as first_call:
        lazy = first_call
    except Unsupported:
        if not (unit.varying or unit.varying_numbers):
            raise
        unit.give_up_symbols()  # an operation may have no rule for open sizes, and be whole for those of now
        return capture_unit(unit, args)
    except UserError:
        raise
    except BackendError as error:
        failed = error.__cause__
    except Exception as error:
        if (unit.varying or unit.varying_numbers) and not unit.family.options.strict:
            unit.give_up_symbols()
            return capture_unit(unit, args)
        return _after_failure(unit, error, args, None)
    if lazy is not None:
        # as the call does, before anything of this capture is used; the state is the program's again
        unit.may_start = lazy.initialise()
        try:
            return capture_unit(unit, args)
        finally:
            unit.may_start = True
    try:
        raise failed  # type: ignore[misc]  # always raised from the backend's own error; here, so neither holds the other
    finally:
        failed = None  # its traceback holds this frame


def _after_failure(unit: Unit, error: Exception, args: tuple[object, ...], recorder: Recorder | None) -> Specialisation:
    """Put the error on record and return a specialisation that runs the original code.

    If even the guards seen so far cannot be written, it has none: every later call runs eagerly.
    """
    if unit.family.options.strict:
        raise error
    guards: list[Guard] = [] if recorder is None else recorder.guards.demanded
    graph = None if recorder is None else recorder.graph.fx
    examples = [] if recorder is None else [real for _, real in recorder.graph.placeholders.values()]
    report_failure("capture", unit, error, args, guards, graph, examples)
    try:
        return eager_specialisation(unit, guards)
    except Exception:
        return Specialisation(unit.eager, (), "", eager=True, has_graph=False)


def _capture(unit: Unit, args: tuple[object, ...]) -> Specialisation:
    """Capture up to the end, or find the break and capture again up to there.

    A break is put into the innermost frame that can be left; where that fails, into the frame that called it.
    """
    try:
        outcome = _attempt(unit, args, None)
        while isinstance(outcome, _Stop):
            outcome = _attempt(unit, args, outcome)
    except AssumedInVain:
        unit.may_assume = False
        return _capture(unit, args)
    return outcome


@dataclass(frozen=True, slots=True, eq=False)
class _Stop:
    """A break, and where it may be put: (depth of the frame, number of the step), the best first.

    depth: of the frame that the program broke in.
    """

    signal: Break
    places: list[tuple[int, int]]
    depth: int


def _attempt(unit: Unit, args: tuple[object, ...], stop: _Stop | None) -> Specialisation | _Stop:
    attempt = CaptureAttempt(
        stop.places[0][1] if stop is not None else -1,
        unit.graph_free,
        unit.may_assume and not MODES_ASIDE.modes,
        unit.may_ask(),
        unit.may_start,
        unit.family.fullgraph,
        unit.may_be_finite,
        unit.symbolic_dimensions(),
        frozenset(unit.varying_numbers),
    )
    recorder = Recorder(unit.family.options, attempt, run_frame, make_generator)
    with lookups_guarded(recorder):
        return _attempt_by(recorder, unit, args, stop)


def _attempt_by(recorder: Recorder, unit: Unit, args: tuple[object, ...], stop: _Stop | None) -> Specialisation | _Stop:
    grad_mode = torch.is_grad_enabled()
    try:
        recorder.frames.given = frozenset(map(id, args))
        if MODES_ASIDE.modes:
            recorder.enter_outer_modes()
        frames = recorder.frames.entered = frames_of(recorder, unit, args)
        try:
            with noted_warnings(recorder.frames.warned):
                try:
                    run_chain(recorder, frames)
                finally:
                    recorder.frames.dropped = None
        except StopAtBreak as stopped:
            assert stop is not None
            if len(stopped.frames) - 1 != stop.places[0][0]:
                raise SkipFrame(CANNOT_RESUME, "evaluated again, the program took another way", None) from None
            return _finish_break(unit, recorder, stopped.frames, stop)
        except Break as signal:
            if MODES_ASIDE.modes:  # what breaks would run without the modes
                raise SkipFrame(FUNCTION_MODE, signal.detail, signal.origin) from None
            if unit.family.fullgraph or stop is not None:
                raise
            places = places_to_stop(recorder.frames.stopped, signal)
            if not places:
                raise SkipFrame(CANNOT_RESUME, signal.detail, signal.origin) from None
            signal.__traceback__ = None  # it holds this frame, and so the arguments
            return _Stop(signal, places, len(recorder.frames.stopped) - 1)
        return _finish_return(unit, recorder, frames[0], args)
    except (Break, SkipFrame) as signal:
        _let_frames_go(signal)
        if stop is not None and len(stop.places) > 1:
            return _Stop(stop.signal, stop.places[1:], stop.depth)
        return _skip(unit, recorder, signal)
    except Raised as raised:
        _let_frames_go(raised)
        detail = f"{raised.value.python_type().__name__} leaves the function"
        return _skip(unit, recorder, SkipFrame(EXCEPTION, detail, unit.origin()))
    except BackendError:
        raise
    except (UserError, Unsupported):
        raise
    except Exception as error:
        if recorder.sizes.environment is not None:
            raise
        return _after_failure(unit, error, args, recorder)
    finally:
        set_grad_mode(grad_mode)
        recorder.modes.restore_autocast()
        recorder.modes.blocks.restore()
        recorder.release()


def _let_frames_go(signal: BaseException | None) -> None:
    """Take the tracebacks off a signal and those before it: its maker may hold it, and all hold the caller's frame."""
    while signal is not None:
        signal.__traceback__ = None
        signal = signal.__context__


def _skip(unit: Unit, recorder: Recorder, signal: Break | SkipFrame) -> Specialisation:
    origin = signal.origin or unit.origin()
    if unit.family.fullgraph and signal.reason is not EXCEPTION:
        raise Unsupported(
            f"the full graph of {unit.name} breaks: {signal.detail}",
            where=origin.place(),
            why=signal.reason.why,
            hint=f"{signal.reason.hint}; see docs/graph-breaks.md, {signal.reason.id}",
        )
    record(RanEagerly(unit.name, signal.reason.id, signal.detail, signal.reason.hint, origin))
    return eager_specialisation(unit, recorder.guards.demanded)


def _finish_return(unit: Unit, recorder: Recorder, frame: FrameState, args: tuple[object, ...]) -> Specialisation:
    assert frame.returned is not None
    _hold_assumptions(recorder)
    writer = SpecialisationWriter(unit, recorder)
    result = writer.out.value(frame.returned)
    writer.hand_over_pending()
    writer.out.replay_effects()
    writer.out.restore_state()
    small = left_to_numpy(unit, writer, args)
    return small or writer.specialise([f"return {result}"], None, unit.namespace)


def _finish_break(unit: Unit, recorder: Recorder, frames: tuple[FrameState, ...], stop: _Stop) -> Specialisation:
    _hold_assumptions(recorder)
    frame, signal = frames[-1], stop.signal
    instruction = frame.decoded.instructions[frame.index]
    frame.index += 1
    origin = signal.origin or frame.origin()
    before, handled = list(frame.stack), handled_in(frames)
    writer = SpecialisationWriter(unit, recorder)
    writer.watched, writer.keeps_history = watched_by(before), signal.walks_results
    writer.asked_later = asked_later(frames)
    try:
        exception = writer.out.value(handled) if handled is not None else None
        if signal.lets_go_first and stop.places[0][1]:
            operation = Operation(("pass",), (Branch("", (), instruction.index),))  # in a unit that was not given it
        else:
            operation = operation_at(frame, instruction, writer.out, writer.compile_callee)
        goes_on = [writer.branch(frames, branch) for branch in operation.branches]
        caught, handling = writer.handler(frames, before)
        writer.hand_over_pending()
        writer.out.replay_effects()
        writer.out.restore_state()
        writer.keeps_history = writer.keeps_history or sees_steps(writer.asked_later, writer.out.outputs)
    except (Break, SkipFrame) as inner:
        # Fetching a value is not an operation that plain Python could do in between: the tensor is the reason.
        why = signal.reason if signal.reason is UNSUPPORTED_TENSOR else CANNOT_RESUME
        raise SkipFrame(why, f"{signal.detail}; {inner.detail}", origin) from None
    reason = signal.reason if len(frames) - 1 == stop.depth else CALLEE_BREAKS
    record(Broke(reason.id, signal.detail, signal.reason.why, signal.reason.hint, origin))
    statements = list(operation.statements)
    if exception is not None:
        statements = _under_handler(statements, writer.out.inject(run_handling), exception)
    dropped = writer.left_by(frames[handling:], statements)
    traced = len(frames) - handling + 1 if caught is not None else len(frames)  # frames that the exception goes through
    callers = frame.origin().chain()[-traced:-1]
    called = f"{writer.out.inject(add_callers)}(_error, {writer.out.inject(callers)})" if callers else None
    tail = _break_lines(operation.branches, statements, goes_on, caught, dropped, called)
    return writer.specialise(tail, frame.origin(), frame.namespace)


def _hold_assumptions(recorder: Recorder) -> None:
    blocks, graph = recorder.modes.blocks.in_graph, recorder.graph
    writes = graph.mutates_inputs and not graph.assumes_only_no_warning()  # then what is written is saved
    if graph.assumed and not leaves_no_trace(graph.fx, writes, recorder.modes.changed, blocks):
        raise AssumedInVain


def _under_handler(statements: list[str], run: str, exception: str) -> list[str]:
    """Return statements that do the same while an exception is being handled."""
    stored = [node for node in ast.walk(parsed("\n".join(statements))) if isinstance(node, ast.Name)]
    names = "".join(f"{name}, " for name in sorted({n.id for n in stored if isinstance(n.ctx, ast.Store)}))
    call = f"{run}({exception}, _operation)"
    return [
        "def _operation():",
        *(f"    {line}" for line in statements),
        f"    return ({names})",
        f"{names}= {call}" if names else call,
    ]


def _break_lines(
    branches: tuple[Branch, ...],
    lines: list[str],
    goes_on: list[str],
    caught: str | None,
    dropped: list[str],
    called: str | None,
) -> list[str]:
    """Return the operation and what goes on after it; dropped, called: the statements for when it raises.

    The exception knows this frame by its traceback, and the frame would know it: a cycle.
    """
    if caught is None and (dropped or called):
        lines = [
            "try:",
            *(f"    {line}" for line in lines),
            "except BaseException as _error:" if called else "except BaseException:",
            *([f"    {called}"] if called else []),
            *(f"    {line}" for line in dropped),
            "    raise",
        ]
    if caught is not None:
        lines = [
            "try:",
            *(f"    {line}" for line in lines),
            "except BaseException as _error:",
            *([f"    {called}"] if called else []),
            "    _caught = _error",
            "else:",
            "    _caught = None",
            "if _caught is not None:",
            "    try:",
            f"        return {caught}",
            "    finally:",
            "        _caught = None",
            *(f"        {line}" for line in dropped),
        ]
    for branch, target in zip(branches, goes_on, strict=True):
        lines.append(f"if {branch.test}: return {target}" if branch.test else f"return {target}")
    return lines
