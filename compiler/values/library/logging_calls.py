"""Logging: whether a logger is enabled is asked now and guarded; what is below its level is dropped."""

import functools
import logging
from typing import Any

from ..constant import Constant
from ..guard import Answer, GuardKind
from ..python.objects.instances import ObjectValue
from ..reasons import SIDE_EFFECT_CALL, Break
from ..rule_tables import calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value
from .reflection_calls import demand_frames

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}


def _logger(ctx: CaptureContext, value: Value) -> logging.Logger:
    """Return the real logger, known by identity."""
    value = ctx.realize(value)
    real = value.real if isinstance(value, ObjectValue) else None
    if not isinstance(real, logging.Logger):
        raise Break(SIDE_EFFECT_CALL, f"logging by {value.describe()}")
    if value.source is not None:
        ctx.guards.add(value.source, GuardKind.IDENTITY, real)
    return real


def _ask(ctx: CaptureContext, logger: logging.Logger, question: str, *args: object) -> object:
    """Ask a logger now, and again at every entry."""
    function = getattr(type(logger), question)
    answer = function(logger, *args)
    ctx.guards.add(Injected(function), GuardKind.ANSWER, Answer((logger, *args), {}, answer))
    return answer


@calls(logging.getLogger)
def _get_logger(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    name = ctx.realize(args[0] if args else kwargs.get("name", Constant(None)))
    if not name.is_constant():
        raise Break(SIDE_EFFECT_CALL, "logging.getLogger() of a name that is not known")
    logger = logging.getLogger(name.constant())  # type: ignore[arg-type]  # a name or None; makes it, as eager does
    return ctx.wrap(logger, Injected(logger))


@calls(logging.Logger.isEnabledFor)
def _is_enabled(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    level = ctx.realize(args[1] if len(args) > 1 else kwargs["level"])
    if not level.is_constant():
        raise Break(SIDE_EFFECT_CALL, "isEnabledFor() of a level that is not known")
    return Constant(_ask(ctx, _logger(ctx, args[0]), "isEnabledFor", level.constant()))


@calls(logging.Logger.getEffectiveLevel)
def _effective_level(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return Constant(_ask(ctx, _logger(ctx, args[0]), "getEffectiveLevel"))


@calls(logging.getLevelName)
def _level_name(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    level: Any = ctx.realize(args[0]).constant()
    return Constant(logging.getLevelName(level))


def _drop_or_break(ctx: CaptureContext, args: Arguments, kwargs: Keywords, *, name: str) -> Value:
    logger = _logger(ctx, args[0])
    if _ask(ctx, logger, "isEnabledFor", _LEVELS[name]):
        demand_frames(ctx, kwargs.get("stacklevel"))
        raise Break(SIDE_EFFECT_CALL, f"logging.Logger.{name}")
    return Constant(None)


for _name in _LEVELS:
    calls(getattr(logging.Logger, _name))(functools.partial(_drop_or_break, name=_name))


@calls(logging.Logger.log)
def _log(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    level = ctx.realize(args[1])
    if not level.is_constant() or _ask(ctx, _logger(ctx, args[0]), "isEnabledFor", level.constant()):
        demand_frames(ctx, kwargs.get("stacklevel"))
        raise Break(SIDE_EFFECT_CALL, "logging.Logger.log")
    return Constant(None)
