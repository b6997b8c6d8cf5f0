"""The catalogue of break reasons and the page made of it."""

from plumbline.compiler.values.reasons import REASONS
from support.break_catalogue import PAGE, page
from support.break_examples import EXAMPLES


def test_every_reason_has_an_example_and_every_example_a_reason():
    assert list(EXAMPLES) == list(REASONS)


def test_ids_are_words_for_links_and_texts_are_clauses():
    for identifier, reason in REASONS.items():
        assert identifier == reason.id == identifier.lower().replace(" ", "-")
        for text in (reason.what, reason.why, reason.hint):
            assert text
            assert not text.endswith(".")
            assert "\n" not in text


def test_the_page_is_up_to_date():
    said = "run: python tests/support/break_catalogue.py"
    assert PAGE.read_text(encoding="utf-8") == page(), said
