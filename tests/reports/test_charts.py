"""Where dots and lines go."""

import math

from hypothesis import given
from hypothesis import strategies as st

from plumbline.reports.charts import SPARK_HEIGHT, SPARK_WIDTH, margin_chart, spark_of
from support.made_rows import case_row, wrong_case

margins = st.floats(min_value=0) | st.just(math.inf) | st.just(math.nan)


@given(st.lists(margins, min_size=2, max_size=30))
def test_a_sparkline_stays_in_its_box(values):
    spark = spark_of([("run", "passed", value) for value in values])
    if all(value == 0.0 for value in values):
        assert spark is None
        return
    points = [tuple(map(float, point.split(","))) for point in spark.points.split()]
    assert len(points) == len(values)
    assert all(0 <= x <= SPARK_WIDTH and 0 <= y <= SPARK_HEIGHT for x, y in points)
    above = [value > 1 or math.isnan(value) for value in values]
    assert all(y <= spark.limit for (_, y), over in zip(points, above, strict=True) if over)
    assert all(y >= spark.limit for (_, y), over in zip(points, above, strict=True) if not over)


def test_one_run_is_no_history():
    assert spark_of([("run", "passed", 0.5)]) is None
    assert spark_of([]) is None


@given(st.lists(margins, min_size=1, max_size=40))
def test_dots_stand_on_the_right_side_of_the_limit(values):
    chart = margin_chart([case_row(f"t{n}", margin=value) for n, value in enumerate(values)])
    (lane,) = chart.lanes
    assert len(lane.dots) + lane.equal == len(values)
    assert lane.equal == sum(value == 0.0 for value in values)
    for dot in lane.dots:
        assert 0 <= dot.x <= chart.width
        assert 0 <= dot.y <= lane.base <= chart.height
        value = values[int(dot.title.split()[1].removeprefix("t"))]
        if not 0.8 < value < 1.2:  # a dot's place is rounded to its own width
            assert (dot.x > chart.limit) == (value > 1 or math.isnan(value))


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_larger_margins_stand_further_right(one, other):
    chart = margin_chart([case_row("a", margin=one), case_row("b", margin=other), case_row("c", margin=1e6)])
    at = {dot.title.split()[1]: dot.x for dot in chart.lanes[0].dots}
    assert (at["a"] <= at["b"]) if one <= other else (at["a"] >= at["b"])


def test_every_backend_has_its_own_lane():
    chart = margin_chart([case_row(backend=b) for b in ("inductor", "eager")])
    assert [lane.name for lane in chart.lanes] == ["plumbline:eager", "plumbline:inductor"]
    assert chart.lanes[0].base < chart.lanes[1].base


def test_a_failing_case_of_margin_zero_is_a_dot_not_a_count():
    chart = margin_chart([wrong_case(margin=0.0, aspect="aliasing"), case_row("b", margin=0.0, verdict="EQUAL")])
    assert chart.lanes[0].equal == 1
    assert [dot.tone for dot in chart.lanes[0].dots] == ["bad"]


def test_nothing_judged_means_no_chart():
    assert margin_chart([case_row(outcome="skipped", judged_calls=0, margin=0.0)]) is None
