"""docs/ir-checks.md says which checks exist and after which stages they hold."""

from support.ir_check_table import PAGE, page


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "run python tests/support/ir_check_table.py"
