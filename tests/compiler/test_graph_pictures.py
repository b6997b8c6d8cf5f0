"""Pictures of graphs: valid SVG in which every operation stands below what it reads."""

from itertools import pairwise
from xml.etree import ElementTree

import torch

from plumbline.compiler.graph_pictures import graph_svg

SVG = "{http://www.w3.org/2000/svg}"


def program(x, w):
    y = x @ w
    return (y.sin() * y.cos() + y).sum(), torch.relu(x < 3)


def boxes(text):
    """Return the first line of each box, with its left, upper, right and lower edge."""
    found = {}
    for group in ElementTree.fromstring(text).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        left, top, width, height = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        found[group.find(f"{SVG}text").text] = (left, top, left + width, top + height)
    return found


def test_every_node_has_a_box_and_every_read_an_arrow():
    graph = torch.fx.symbolic_trace(program)
    text = graph_svg(graph)
    assert len(boxes(text)) == len(graph.graph.nodes)
    arrows = [path for path in ElementTree.fromstring(text).iter(f"{SVG}path") if path.get("marker-end")]
    assert len(arrows) == sum(len(node.all_input_nodes) for node in graph.graph.nodes)


def test_what_is_read_stands_above_and_boxes_do_not_overlap():
    graph = torch.fx.symbolic_trace(program)
    placed = boxes(graph_svg(graph))
    by_node = dict(zip(graph.graph.nodes, placed.values(), strict=True))
    for node, (_, top, _, _) in by_node.items():
        assert all(by_node[source][3] < top for source in node.all_input_nodes)
    edges = sorted(placed.values(), key=lambda box: (box[1], box[0]))
    for (_, top, right, _), (left, other_top, _, _) in pairwise(edges):
        assert top != other_top or right <= left


def test_letters_that_xml_reserves_are_written_otherwise():
    graph = torch.fx.symbolic_trace(program)
    graph.graph.find_nodes(op="placeholder")[0].name = "a<b&c"
    assert "input a<b&c" in boxes(graph_svg(graph))
