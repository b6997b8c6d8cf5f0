"""The file: sealed by its policy, of one piece, and unmoved by whatever text is in the results."""

import base64
import hashlib
import json
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.reports.dashboard.document import json_text, live_document, page_json, static_document
from support.made_dashboard import made_history

MADE = made_history(nights=20, tests=24)
SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
FETCHING = re.compile(
    r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|\beval\("
)


def policy_of(page: str) -> str:
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    return found[1]


def test_only_its_own_script_and_style_are_allowed():
    page = static_document(MADE.page, MADE.history)
    policy = policy_of(page)
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    code = [match["text"] for match in SCRIPT.finditer(page) if "type=" not in match["attributes"]]
    style = page.split("<style>")[1].split("</style>")[0]
    for text in (*code, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(code) == 1
    assert " style=" not in page.replace(style, "").replace(code[0], "")


def test_it_fetches_nothing_and_writes_no_markup():
    assert not FETCHING.search(static_document(MADE.page, MADE.history))
    assert "connect-src 'self'" in policy_of(live_document())


@settings(max_examples=20, deadline=None)
@given(
    st.text() | st.sampled_from(["</script><script>alert(1)</script>", "<!--", "{{ script }}", "]]>", "\u2028\ud800"])
)
def test_any_text_comes_back_and_leaves_the_file_as_it_is(text):
    fault = replace(MADE.page.faults[0], title=text, why=text)
    page = static_document(replace(MADE.page, headline=text, faults=(fault,)), MADE.history)
    blocks = list(SCRIPT.finditer(page))
    assert len(blocks) == 5
    data = json.loads(blocks[0]["text"])
    assert data["headline"] == data["faults"][0]["why"] == text


def test_numbers_that_json_lacks_become_nothing():
    assert (
        json_text({"a": float("nan"), "b": [float("inf"), 1.5], "c": "<&"})
        == '{"a":null,"b":[null,1.5],"c":"\\u003c\\u0026"}'
    )


def test_the_page_and_its_data_are_the_same_each_time():
    assert static_document(MADE.page, MADE.history) == static_document(MADE.page, MADE.history)
    assert page_json(MADE.page) == page_json(MADE.page)
