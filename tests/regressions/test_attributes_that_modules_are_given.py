"""Attributes of modules: absent ones of libraries had no guard, and what a call set was not in `dir` and `vars`."""

from support.played_programs import difference_of

_MODULE = """
import math, types
made = types.ModuleType("made")
made.total = 0
asked = types.ModuleType("asked")
asked.__getattr__ = lambda name: name * 2
class Guarded(types.ModuleType):
    level = 4
    @property
    def twice(self):
        return 2 * self.level
guarded = Guarded("guarded")
def words(action):
    try:
        return action()
    except Exception as error:
        return repr(error)
"""


def test_attributes_that_libraries_do_not_have():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    return words(lambda: math.fresh), hasattr(torch.nn, "fresh"), getattr(torch, "fresh", 5), x + 1
""",
        (
            "r0 = step(x0)",
            "math.fresh = torch.nn.fresh = torch.fresh = 4",
            "r1 = step(x0)",
            "del math.fresh, torch.nn.fresh, torch.fresh",
            "r2 = step(x0)",
        ),
    )


def test_attributes_that_the_call_sets():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = []
    for module in (made, math):
        log += [words(lambda: module.fresh), "fresh" in dir(module), "fresh" in vars(module)]
        module.fresh = x
        log += [module.fresh + 1, "fresh" in dir(module), "fresh" in vars(module), vars(module)["fresh"]]
        del module.fresh
        log += [words(lambda: module.fresh), "fresh" in dir(module), "fresh" in vars(module)]
    made.total += x.sum()
    return log, vars(made)["total"], made.total, sorted(vars(made))
"""
    )


def test_namespaces_of_modules_change_between_calls():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    space = vars(made)
    return space["total"], "later" in space, space.get("later"), x + 1
""",
        ("r0 = step(x0)", "made.total = 3", "r1 = step(x0)", "made.later = 4", "r2 = step(x0)"),
    )


def test_modules_with_rules_of_their_own():
    assert not difference_of(
        _MODULE
        + """
def assign(module, name):
    setattr(module, name, 3)
def step(x):
    log = [asked.fresh, words(lambda: vars(asked).update(fresh=3)), asked.fresh]
    log += [words(lambda: assign(guarded, "twice")), words(lambda: assign(guarded, "level")), guarded.twice]
    return log, x + 1
"""
    )
