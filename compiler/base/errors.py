"""The error taxonomy: every exception plumbline raises says what, where, why and what to do next."""


class PlumblineError(Exception):
    """The base of every error of ours; its text is built here and nowhere else.

    what: the fact, one clause.  where: the user's `file:line`, an option or a path; may be empty.
    why: the cause; may be empty.  hint: the next thing to do, always present.
    """

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str) -> None:
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """Return the whole message as one line that ends with the next thing to do."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.why:
            text += f" ({self.why})"
        return f"{text}; {self.hint}".replace("\n", " ")

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders (xdist, sandboxes) with all their parts."""
        return (_rebuild, (type(self), self.what, self.where, self.why, self.hint))


def _rebuild(kind: type[PlumblineError], what: str, where: str, why: str, hint: str) -> PlumblineError:
    return kind(what, where=where, why=why, hint=hint)


class UserError(PlumblineError):
    """The caller asked for something that cannot be: an unknown name, a bad path, a wrong option."""


class UnknownOption(UserError, AttributeError):
    """There is no option of this name; an AttributeError too, because `plumbline.config` has options as attributes."""


class Unsupported(PlumblineError):
    """Plumbline lacks this; the compiler falls back, a demand for a full graph raises."""


class CallersFailure(Exception):
    """Carries what a function that the caller gave to a backend has raised, `error`, back to the caller."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class InternalError(PlumblineError):
    """A bug of ours; names the stage, and never reaches a user's `except` clause in normal use."""


class BuildError(PlumblineError):
    """A C or Triton toolchain refused generated text; shows the line it refused."""
