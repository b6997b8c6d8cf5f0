"""The picture and the text of a report: well-formed, with every line, and safe for any source."""

import json
from xml.etree import ElementTree

import torch

from plumbline.oracle import measure_noise
from plumbline.oracle.noise_meter.noise_picture import page, picture

SVG = "{http://www.w3.org/2000/svg}"


def program(x):
    y = x + 1e8 if x.numel() < 100 and "<&>" else x
    for _ in range(500):
        y = y * 1.0001
    return y - 1e8, y.sin()


def report():
    return measure_noise(program, torch.rand(10, generator=torch.Generator().manual_seed(0)))


def test_the_picture_has_a_row_for_each_line_and_a_chart():
    root = ElementTree.fromstring(picture([report()]))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert any('"<&>"' in text for text in texts)
    assert sum(text == "return y - 1e8, y.sin()" for text in texts) == 2  # one for each output
    circles = list(root.iter(f"{SVG}circle"))
    assert 100 < len(circles) <= 800
    height = float(root.get("height"))
    assert all(0 <= float(circle.get("cy")) <= height for circle in circles)


def test_nothing_to_show_is_a_picture_too():
    root = ElementTree.fromstring(picture([measure_noise(torch.clone, torch.ones(3))]))
    assert any("Nothing is rounded" in (element.text or "") for element in root.iter(f"{SVG}text"))


def test_a_page_has_the_picture_and_the_text():
    text = page([report()])
    assert "<svg" in text
    assert "&lt;&amp;&gt;" in text
    assert "keeps" in text.partition("<pre>")[2]


def test_data_is_json_without_infinities():
    data = json.loads(report().to_json(), parse_constant=lambda name: 1 / 0)
    first = data["outputs"][0]
    assert first["path"] == "output[0]"
    assert {line["does"] for line in first["lines"]} >= {"introduces"}


def test_the_table_counts_what_it_leaves_out():
    source = "def f(x):\n" + "".join(f"    x = x * {1 + n / 7}\n" for n in range(20)) + "    return x\n"
    names: dict = {}
    exec(compile(source, "many_lines.py", "exec"), names)
    text = str(measure_noise(names["f"], torch.rand(10, generator=torch.Generator().manual_seed(0))))
    assert "lines more" in text
    assert "many_lines.py:" in text
