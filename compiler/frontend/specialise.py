"""Write one specialisation: compile the graph of a finished capture, and put the Python around it."""

import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import fx

from ..base.debug_folder import DIAGRAM
from ..base.errors import UserError
from ..base.events import (
    Artifact,
    BackendCalled,
    Captured,
    FellBack,
    is_recording,
    record,
    stage,
)
from ..base.origin import Origin
from ..base.torch_facts import set_grad_mode, tensor_hooks
from ..bytecode.resume_chain import NO_POSITION, Place
from ..bytecode.resume_code import HANDLED, VALUE, ResumeLayout
from ..bytecode.resume_code import NULL as NULL_KIND
from ..graph.effects.call_effects import Effects
from ..graph.effects.undo import EFFECTS, HOOKED, READS_LATER, STEPS_WANTED, WARNED, effects_of, saved, undoing
from ..graph_pictures import graph_svg
from ..values.backward_state import LATER_READS
from ..values.guard import Guard
from ..values.python.objects.functions import CellValue
from ..values.reasons import FRAME_ACCESS, Break
from ..values.source import Argument
from ..values.torch.numbers.python_draws import GeneratorsBefore
from ..values.torch.tensor import TensorValue
from ..values.value import Value
from .breaks.later_code import Later
from .breaks.operations import Branch, is_compilable_callee
from .context.assumptions import AssumedInVain
from .context.autocast import autocast_depth, autocast_state, put_autocast
from .context.frame import NULL, FrameState, HandledValue, asks_again_for_locals, in_order_of_ends, kept_locals
from .context.lazy import LazyValue
from .context.lifetimes import is_watched, reaches
from .context.recorder import Recorder
from .context.repeated_warnings import OperationWarning, operation_warnings, warning_at_the_end
from .guards.generated_function import Names, guard_lines
from .guards.guard_rules import guard_words
from .guards.guarded_code import guarded_function
from .rescue import Rescue
from .residual import EAGER, Residual, distinct_guards
from .units.failure import report_failure
from .units.unit import Specialisation, Tail, Unit


class BackendError(Exception):
    """A backend given by the user failed; its own error is the cause."""


SYMBOLIC = "symbolic"  # in the meta of a graph module: its guards leave sizes or numbers of inputs open


class SpecialisationWriter:
    """Writes one specialisation."""

    def __init__(self, unit: Unit, recorder: Recorder) -> None:
        self.unit = unit
        self.recorder = recorder
        self.names = Names()
        self.guards = [*recorder.guards.demanded, *distinct_guards(recorder), *recorder.graph.questions.guards()]
        self.checks = guard_lines(self.guards, self.names)
        self.written = len(recorder.guards.demanded)
        self.before: list[str] = []
        self._draw()
        used = [
            recorder.graph.placeholders[node]
            for node in recorder.graph.fx.nodes
            if node.op == "placeholder" and node.users
        ]
        self.examples = [real for _, real in used]
        self.fetched = [self.names.fetch(source, self.before) for source, _ in used]
        self.out = Residual(recorder, self.names, self.before)
        self.pending = recorder.frames.pending()
        self.watched: frozenset[int] = frozenset()  # ids of the values that the operation at the break may watch
        self.run_warns = False  # whether the run of the graph gives all warnings of the capture
        self.asked_later = Later.NOTHING
        self.keeps_history = False  # whether the program looks at the steps of the graph's results later on

    def _draw(self) -> None:
        """Write the draws from Python's generators, and what puts these back if the original code runs after all."""
        draws = [
            (self.names.fetch(owner.source, self.before), draw)
            for owner, draw in self.recorder.graph.drawn_numbers
            if owner.source
        ]
        if draws:
            generators = "".join(f"{name}, " for name in dict.fromkeys(name for name, _ in draws))
            self.before.append(f"_drawn = {self.names.inject(GeneratorsBefore)}({generators})")
        self.before += [f"_d{n} = {self.names.inject(draw)}({name})" for n, (name, draw) in enumerate(draws)]

    def _original(self, function: Callable[..., object]) -> str:
        """Return the call of a function that runs the original code from its start."""
        call = f"{self.names.inject(function)}({', '.join(self.unit.parameters)})"
        return f"(_drawn.put_back(), {call})[1]" if self.recorder.graph.drawn_numbers else call

    def compile_callee(self, callee: Value, expression: str, out: Residual) -> str:
        """Return the expression of what to call at the break: the callee's own unit where it can have one."""
        if not is_compilable_callee(callee):
            return expression
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.unit.family.callee)}({expression})")
        return name

    def branch(self, frames: tuple[FrameState, ...], branch: Branch) -> str:
        """Return the expression that goes on at a branch."""
        stack, values = self._stack(frames[-1].stack)
        for pushed in branch.pushed:
            stack.append(VALUE if pushed else NULL_KIND)
            values += [pushed] if pushed else []
        return self._resume(frames, branch.target, stack, values)

    def handler(self, frames: tuple[FrameState, ...], before: list[Value]) -> tuple[str | None, int]:
        """Return the expression that goes on in the exception handler around the break; None if there is none.

        before: the stack of the innermost frame before the operation took its operands. The handler may be in a
        calling frame; then the frames inside it are left. Also returned: how many frames go on, 0 if none does.
        """
        stacks = [*(frame.stack for frame in frames[:-1]), before]
        for depth in reversed(range(len(frames))):
            frame = frames[depth]
            handler = frame.decoded.handler_of[frame.current().index]
            if handler is None:
                continue
            stack, values = self._stack(stacks[depth][: handler.depth])
            if handler.keeps_position:
                stack.append(VALUE)
                values.append(str(NO_POSITION))
            goes_on = self._resume(frames[: depth + 1], handler.target, [*stack, VALUE], [*values, "_caught"])
            return goes_on, depth + 1
        return None, 0

    def _stack(self, values: list[Value]) -> tuple[list[str], list[str]]:
        kinds = [NULL_KIND if v is NULL else HANDLED if isinstance(v, HandledValue) else VALUE for v in values]
        plain = [value.exception if isinstance(value, HandledValue) else value for value in values]
        return kinds, [self.out.value(value) for value in plain if value is not NULL]

    def _resume(self, frames: tuple[FrameState, ...], target: int, stack: list[str], values: list[str]) -> str:
        """Return the expression that goes on with the innermost frame at a place, and with its callers after it."""
        places, state, instead = [], list[str](), None
        for frame in reversed(frames):
            drops = frame is not frames[-1] and (frame.drops or instead is not None)
            if frame is not frames[-1]:
                target = frame.index
                stack, values = self._stack(frame.stack if instead is None else [*frame.stack, instead])
            instead = frame.instead
            if asks_again_for_locals(frame, target):
                raise Break(FRAME_ACCESS, "locals() after a break, for the dictionary that it gave before")
            needed = kept_locals(frame, target, all_of_them=Later.LOCALS in self.asked_later)
            held = {name for name, value in frame.locals.items() if name not in needed and self._is_held(value)}
            local = in_order_of_ends(frame, {*needed, *held}) if held else needed
            values = values + [self.out.value(cell) for cell in frame.cells.values()]
            state += values + [self.out.value(frame.locals[name]) for name in local]
            layout = ResumeLayout(target, tuple(stack), tuple(frame.cells), local)
            places.append(Place(frame.decoded, frame.namespace, layout, drops))
        target_name = self.out.inject(self.unit.resume(tuple(places)))
        return f"{self.out.inject(Tail)}({target_name}, ({''.join(f'{value}, ' for value in state)}))"

    def left_by(self, frames: tuple[FrameState, ...], statements: list[str]) -> list[str]:
        """Return the statement for when an exception has left these frames: only their variables are held by it.

        The other frames go on elsewhere, with what this function has handed to them.
        """
        known = [*self.unit.parameters, *self.names.fetched.values(), *self.out.known.values()]
        return self._dropping(frames, [*filter(_NAME.fullmatch, known), *_NAME.findall("\n".join(statements))])

    def _dropping(self, frames: tuple[FrameState, ...], names: Iterable[str]) -> list[str]:
        variables = [value for frame in frames for value in (*frame.locals.values(), *frame.cells.values())]
        held = {self._known_name(value) for value in variables} | {"_operation", *self.names.constants}
        dropped = [name for name in dict.fromkeys(names) if name not in held]
        return [" = ".join([*dropped, "None"])] if dropped else []

    def _known_name(self, value: Value) -> str | None:
        """Return the name that a value has in the generated function, None if it has none."""
        inner = value.inner if isinstance(value, LazyValue) else value
        content = inner.content if isinstance(inner, CellValue) else None
        if content is not None:
            return self._known_name(content)
        name = self.out.known.get(id(inner))
        if name is None and isinstance(value.source, Argument):
            return value.source.name
        return name if name is not None or value.source is None else self.names.fetched.get(value.source)

    def _is_held(self, value: Value) -> bool:
        """Return whether the program may notice that a local which is not read again has gone."""
        return id(value) in self.watched or is_watched(value) or reaches(value, self.pending)

    def hand_over_pending(self) -> None:
        """Hand over the generators that nothing else has: they end, and clean up, with the generated function."""
        for generator in self.pending:
            self.out.value(generator)

    def specialise(self, tail: list[str], origin: Origin | None, module: dict[str, object]) -> Specialisation:
        """Compile the graph and return the finished specialisation."""
        call = self._graph_call()
        # last: compiling the graph and writing values may assume more
        late = [*self.recorder.guards.demanded[self.written :], *self.recorder.sizes.guards()]
        self.recorder.sizes.record_fixed()
        self.guards += late
        self.checks += guard_lines(late, self.names)
        body = [*self.before, *call, *self._warn_beside_the_graph(), *self.out.lines]
        if len(tail) > 1:
            body += _let_go([*self.checks, *body], tail)
        body += tail
        run, text = guarded_function(
            _identifier(self.unit.name),
            self.unit.parameters,
            tuple(self.guards),
            self.checks,
            body,
            self.names,
            origin,
            module,
            self.unit.family.options,
        )
        if is_recording():
            record(Artifact("capture", self.unit.name, "python", text))
        return Specialisation(run, tuple(self.guards), text, eager=False, has_graph=bool(call))

    def _warn_beside_the_graph(self) -> list[str]:
        """Return the statements that give the warnings of what is no operation of the graph, where its run does not."""
        beside = [one for one in self.recorder.graph.warned if not (one.in_graph or self.run_warns)]
        return [f"{self.names.inject(one.give)}()" for one in beside]

    def _graph_call(self) -> list[str]:
        """Return the statements that run the graph; none if it has no operations."""
        graph, recorder = self.recorder.graph.fx, self.recorder
        operations = [node for node in graph.nodes if node.op != "placeholder" and not _sets_state(node)]
        if not operations:
            return []
        checks = [f"bool({self.out.value(value)}) is {outcome}" for value, outcome in recorder.graph.assumed]
        for node in [node for node in graph.nodes if node.op == "placeholder" and not node.users]:
            graph.erase_node(node)
        effects = recorder.graph.happens.summary([node for node in graph.nodes if node.op == "placeholder"])
        graph.output(tuple(value.node for value in self.out.outputs))
        module = fx.GraphModule(torch.nn.Module(), graph)
        module.meta[SYMBOLIC] = bool(recorder.sizes.origins)
        module.meta[EFFECTS] = effects
        module.meta[WARNED] = frozenset(str(w.message) for w in recorder.graph.warned if w.in_graph)
        module.meta[HOOKED] = any(isinstance(v, TensorValue) and v.hooks for v in recorder.graph.input_values)
        module.meta[STEPS_WANTED] = any(STEPS_WANTED in node.meta for node in graph.nodes)
        module.meta[READS_LATER] = tuple(LATER_READS.pop(graph, ()))
        compiled, is_graph = self._compile(module, self.examples, len(operations))
        forward = warning_at_the_end(module.forward, recorder.graph.warned)
        rescue = Rescue(self.unit, module, forward, tuple(self.guards), effects, is_graph)
        lines = self._rescued(self.names.inject(compiled), self.names.inject(rescue))
        if recorder.graph.is_handled:  # by handlers that an error of a caller's hook goes to, where it is raised
            lines.insert(0, f"if {self.names.inject(tensor_hooks)}(): return {self._original(self.unit.eager)}")
        return self._checked(lines, checks, effects) if checks else lines

    def _rescued(self, run: str, rescue: str) -> list[str]:
        """Return the statements that run the graph; where the program fails, its own code runs from the start."""
        inputs = ", ".join(self.fetched)
        outputs = "".join(f"_o{position}, " for position in range(len(self.out.outputs)))
        assign = f"{outputs}= " if outputs else ""
        eager = self.names.inject(EAGER)
        call = self._state_put_back([f"{assign}{run}({inputs})"])
        again = self._state_put_back([f"_failed = {rescue}(_failed, ({inputs}{',' if inputs else ''}))"])
        return [
            "_failed = None",
            "try:",
            *(f"    {line}" for line in call),
            "except Exception as _error:",
            "    _failed = _error",
            "if _failed is not None:",
            *(f"    {line}" for line in again),
            f"    if _failed is {eager}: return {self._original(self.unit.eager)}",
            *([f"    {assign}_failed"] if outputs else []),
        ]

    def _state_put_back(self, lines: list[str]) -> list[str]:
        """Return the statements with the state of torch that the graph changes put back behind them."""
        changed, inject, fresh = self.recorder.modes.changed, self.names.inject, self.names.fresh
        if "autocast" in changed:
            state, depth = fresh(), fresh()
            before = [f"{state} = {inject(autocast_state)}()", f"{depth} = {inject(autocast_depth)}()"]
            lines = _with_finally(before, lines, f"{inject(put_autocast)}({state}, {depth})")
        if "grad" in changed:
            mode = fresh()
            before = [f"{mode} = {inject(torch.is_grad_enabled)}()"]
            lines = _with_finally(before, lines, f"{inject(set_grad_mode)}({mode})")
        return self.recorder.modes.blocks.around(lines, inject, fresh())

    def _checked(self, lines: list[str], checks: list[str], effects: Effects) -> list[str]:
        """Return the statements that run the graph and hold what was assumed of its data."""
        if effects.histories:
            raise AssumedInVain
        unit, is_finite = self.unit, self.recorder.graph.assumes_finite
        state, changes = self.names.fresh(), effects.draws or effects.written
        keep, places = self.names.inject(saved), self.names.inject((effects.written, effects.draws))
        inputs = "".join(f"{name}, " for name in self.fetched)
        return [
            *([f"{state} = {keep}(*{places}, ({inputs}))"] if changes else []),
            *lines,
            f"if not ({' and '.join(checks)}):",
            *([f"    {state}.restore()"] if changes else []),
            f"    return {self._original(unit.after_infinite if is_finite else unit.after_wrong_assumption)}",
        ]

    def _compile(self, module: fx.GraphModule, examples: list[object], operations: int) -> tuple[object, bool]:
        """Return what runs the graph and leaves nothing behind when it fails, and whether that is the graph itself."""
        family, effects, warned = self.unit.family, effects_of(module), self.recorder.graph.warned
        if warned and effects is not None:  # a warning that is made an error comes when everything has been written
            effects = replace(effects, at_risk=effects.written, may_fail=True)
        if is_recording():
            guards = tuple(map(guard_words, self.guards))
            places = tuple(guard.origin.place() if guard.origin is not None else "" for guard in self.guards)
            record(Captured(self.unit.name, operations, len(examples), guards, self.unit.origin(), places))
            record(BackendCalled(family.backend_name, module.print_readable(print_output=False), operations))
            if family.options.draws_graphs:
                record(Artifact("capture", DIAGRAM, "svg", graph_svg(module)))
        if self.keeps_history and not family.user_backend:  # a compiled graph has one step of history for all results
            record(FellBack("graph", "the program looks at the history of its results", self.unit.origin()))
            self.run_warns = True
            return undoing(warning_at_the_end(module.forward, warned), effects), True
        repeated: list[OperationWarning] = []  # what the captured graph warns of while it is traced
        quiet = nullcontext() if family.user_backend else operation_warnings(repeated, self.recorder.frames)
        with stage(f"backend {family.backend_name}"), self.recorder.modes.state_at_entry(), quiet:
            try:
                compiled = family.backend(module, examples)
            except Exception as error:
                if family.user_backend or isinstance(error, UserError):
                    if family.options.repro_after:
                        place = f"the backend {family.backend_name}"
                        report_failure(place, self.unit, error, (), self.guards, module.graph, examples)
                    raise BackendError from error
                if family.options.strict:
                    raise
                place = f"backend {family.backend_name}"
                report_failure(place, self.unit, error, (), self.guards, module.graph, examples)
                compiled = module.forward
        is_graph = compiled == module.forward
        if is_graph or not family.user_backend:  # a backend of the caller's warns as it does
            self.run_warns, compiled = True, warning_at_the_end(compiled, warned)
        return undoing(compiled, effects, writes_last=not (is_graph or family.user_backend or warned)), is_graph


_NAME = re.compile(r"\b_\w+")
_DROP = re.compile(r"\s*(_\w+ = )+None")


def _let_go(lines: list[str], rest: list[str]) -> list[str]:
    """Return the statement that drops what earlier lines fetched and the rest does not name.

    The operation at a break may end objects, as `stock.clear()` does: held here, they would end later, in our order.
    """
    kept = set(_NAME.findall("\n".join(line for line in rest if not _DROP.fullmatch(line))))
    targets = (line.lstrip().partition(" = ") for line in lines)
    fetched = dict.fromkeys(name for name, sign, _ in targets if sign and _NAME.fullmatch(name) and name not in kept)
    return [" = ".join([*fetched, "None"])] if fetched else []


def _with_finally(before: list[str], lines: list[str], last: str) -> list[str]:
    return [*before, "try:", *(f"    {line}" for line in lines), "finally:", f"    {last}"]


def eager_specialisation(unit: Unit, guards: list[Guard]) -> Specialisation:
    """Return a specialisation that runs the original code, under guards."""
    names = Names()
    body = [f"return {names.inject(unit.eager)}({', '.join(unit.parameters)})"]
    run, text = guarded_function(
        _identifier(unit.name),
        unit.parameters,
        tuple(guards),
        guard_lines(guards, names),
        body,
        names,
        None,
        unit.namespace,
        unit.family.options,
    )
    return Specialisation(run, tuple(guards), text, eager=True, has_graph=False)


def _sets_state(node: fx.Node) -> bool:
    return node.target is set_grad_mode or bool(getattr(node.target, "sets_state", False))


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "code"
