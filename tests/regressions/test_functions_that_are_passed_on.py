"""A function given to `re.sub` was stood for by one without parameters, whose TypeError became the program's."""

import re

import plumbline


def shouted(text):
    return re.sub("a", lambda match: match.group().upper(), text)


def test_the_library_calls_the_function():
    assert plumbline.compile(shouted, backend="eager")("bab") == "bAb"
