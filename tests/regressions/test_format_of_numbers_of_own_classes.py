"""`f"{n:03d}"` of an instance of an own class of integers, once its value had changed, raised a TypeError."""

import pytest

import plumbline


class Whole(int):
    pass


class Share(float):
    pass


FORMS = ["f'{number:SPEC}'", "format(number, 'SPEC')", "'{0:SPEC}'.format(number)", "number.__format__('SPEC')"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("specification", ["", "03d", ">8", "5.2f", "%Y"])
@pytest.mark.parametrize("kind", [Whole, Share])
def test_values_that_change(form, specification, kind):
    program = f"""
def step():
    try:
        return {form.replace("SPEC", specification)}
    except Exception as error:
        return str(error)
"""
    scope, eager = {}, {}
    exec(program, scope)
    exec(program, eager)
    compiled = plumbline.compile(scope["step"], backend="eager")
    for value in range(3):
        scope["number"] = eager["number"] = kind(value)
        assert compiled() == eager["step"]()
