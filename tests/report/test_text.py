"""`explain()`: lines and loops as text."""

from tests.report.steps import network


def test_lines_with_their_loops_in_the_users_names():
    step, arguments, _ = network()
    said = step.lower(*arguments).explain(colour=False).splitlines()
    start = next(k for k, line in enumerate(said) if line.split()[:2] == ["line", "share"])
    assert said[start].endswith("by the cost model")
    table = said[start + 1 :]
    head = next(k for k, line in enumerate(table) if line.endswith("scores = model(x)"))
    assert "32 × 64" in table[head + 1]
    assert "ward" in table[head + 1]
    column = table[head].index("scores")
    assert table[head + 1].index("32 × 64") == column
    shares = [float(line.split()[1]) for line in table if "%" in line.split()[2:3]]
    assert abs(sum(shares) - 100.0) < 0.5


def test_colours_only_where_they_are_asked_for():
    step, arguments, _ = network()
    lowering = step.lower(*arguments)
    assert "\033[" not in lowering.explain()
    assert "\033[" in lowering.explain(colour=True)
    assert "\033[" not in lowering.explain(colour=False)


def test_promises_from_before():
    step, arguments, _ = network()
    said = step.lower(*arguments).explain()
    assert "records traced" in said
    assert "lines of C" in said
    assert "last build: cache" in said
    assert "could be faster: " in said
