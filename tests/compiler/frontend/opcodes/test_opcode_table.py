"""Every opcode of every version has a rule, or a reason for running its frame eagerly."""

import pytest

from plumbline.compiler.bytecode.versions import OPCODES
from plumbline.compiler.frontend.opcodes import exception, opcode_rules
from plumbline.compiler.frontend.opcodes.exception import _refuse, missing_rules
from plumbline.compiler.frontend.opcodes.opcode_table import opcode, rules_for
from support.interpreters import VERSIONS, Version

each_version = pytest.mark.parametrize("version", VERSIONS, ids=str)

# Frames of these run eagerly: class bodies and module code, coroutines, exception groups, what the interpreter keeps.
RUNS_EAGERLY = {
    (3, 11): """
        ASYNC_GEN_WRAP BEFORE_ASYNC_WITH CHECK_EG_MATCH DELETE_NAME END_ASYNC_FOR GET_AITER GET_ANEXT GET_AWAITABLE
        IMPORT_STAR LOAD_CLASSDEREF LOAD_NAME PREP_RERAISE_STAR PRINT_EXPR SETUP_ANNOTATIONS STORE_NAME""",
    (3, 12): """
        BEFORE_ASYNC_WITH CALL_INTRINSIC_2 CHECK_EG_MATCH DELETE_NAME END_ASYNC_FOR GET_AITER GET_ANEXT GET_AWAITABLE
        INTERPRETER_EXIT LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS LOAD_NAME RESERVED
        SETUP_ANNOTATIONS STORE_NAME""",
    (3, 13): """
        BEFORE_ASYNC_WITH CALL_INTRINSIC_2 CHECK_EG_MATCH DELETE_NAME END_ASYNC_FOR ENTER_EXECUTOR EXIT_INIT_CHECK
        GET_AITER GET_ANEXT GET_AWAITABLE INTERPRETER_EXIT LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS
        LOAD_LOCALS LOAD_NAME RESERVED SETUP_ANNOTATIONS STORE_NAME""",
}


@each_version
def test_every_opcode_has_a_rule(version: Version) -> None:
    assert opcode_rules.FILES  # importing them fills the table
    assert missing_rules(version) == frozenset()


@each_version
def test_no_rule_for_what_does_not_exist(version: Version) -> None:
    assert {name for name in rules_for(version) if name not in OPCODES[version]} <= set(exception._EAGER)


@each_version
def test_what_runs_eagerly_is_listed(version: Version) -> None:
    """The list may only shrink."""
    refused = {name for name, rule in rules_for(version).items() if rule is _refuse and name in OPCODES[version]}
    assert refused <= set(RUNS_EAGERLY[version].split())


def test_two_rules_for_one_version_are_refused() -> None:
    with pytest.raises(AssertionError, match="two rules for LOAD_CONST"):
        opcode("LOAD_CONST", (3, 12))(_refuse)
