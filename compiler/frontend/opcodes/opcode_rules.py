"""The rules of the running Python, by opcode, from the files that hold them."""

from . import call, control, data, exception, imports, names
from .opcode_table import rules_for

FILES = (call, control, data, exception, imports, names)  # importing one enters its rules in the table
RULES = rules_for()
