"""Tables and figures of each agent's regret, where runs have different numbers of agents."""

import functools

import numpy as np
import pandas as pd
import pytest

import fmab_jax as fmab
from fmab_jax.analysis.agents import select_regret
from fmab_jax.cli.main import main

CURVES = ["regret_by_agent", "own_regret_by_agent"]


@functools.cache
def swept():
    """Agents that pull alike and agents that do not, 3 and 4 of them."""
    grid = {"agents": [3, 4], "arms": 3, "spread": 0.5, "epsilon": 1.0}
    options = {"horizon": 2000, "seeds": 8, "times": 5, "progress": False}
    return fmab.sweep(["cdp", "single"], outputs=CURVES, **grid, **options).load()


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The file of these results, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    fmab.save(swept(), "apart.nc")
    return "apart.nc"


@pytest.mark.parametrize("kind", ["agent_regret", "agent_own_regret"])
def test_a_table_has_the_agents_of_each_run_alone(kind):
    """Would catch rows of agents that a run lacks, and the run's cost counted for each of them."""
    frame = fmab.table(select_regret(swept(), kind))
    assert frame.groupby(["algorithm", "agents"]).agent.apply(list).tolist() == [
        [*range(agents)] for agents in (3, 4, 3, 4)
    ]
    for row in frame.to_dict("records"):
        cell = swept().sel({name: row[name] for name in ("algorithm", "agents", "agent")})
        assert row["regret"] == pytest.approx(float(cell[kind].mean()), rel=1e-12)
    whole = [name for name in frame if name.startswith(("cost", "links", "rounds_made", "bits"))]
    assert not whole and (frame.seeds == 8).all()
    assert "best arm" in fmab.show(frame).attrs["legend"][1] or kind == "agent_regret"


def test_a_run_that_has_not_begun_lacks_no_agent():
    """Would catch an unfinished sweep without the rows that are still to come."""
    data = select_regret(swept(), "agent_regret").isel(agents=[1], algorithm=0)
    frame = fmab.table(data.assign(seeds=data.seeds * 0, regret=data.regret * np.nan))
    assert len(frame) == 4 and (frame.seeds == 0).all()


@pytest.mark.parametrize(
    "words",
    [
        "--x agents --hue agent --select algorithm=single",
        "--x agent --y agents --select algorithm=cdp",
        "--curves --hue agent",
        "--curves --hue agent --metric own_regret --select algorithm=cdp",
    ],
)
def test_numbers_of_agents_have_figures_by_agent(stored, words):
    """Would catch a refusal of the agents that some runs lack."""
    assert main(["plot", stored, *words.split(), "--out", "x.png"]) == 0


def draw(kind, **places):
    return fmab.plot_runs(select_regret(swept(), kind).isel(places))


@pytest.mark.parametrize("axis", ["algorithm", "agents"])
def test_colours_are_agents_strokes_runs_and_links_are_drawn_once(axis):
    """Would catch one look for two facts, and the links of a run once for each agent."""
    other = {"algorithm": "agents", "agents": "algorithm"}[axis]
    figure = draw("agent_own_regret", **{other: [0]})
    regret, links = figure.axes
    labels = [text.get_text() for box in figure.legends for text in box.get_texts()]
    values = swept()[axis].values.tolist()
    sizes = [3, 3] if axis == "algorithm" else [3, 4]
    assert len(labels) == max(sizes) + 2 and len(regret.lines) == sum(sizes)
    runs = np.repeat([0, 1], sizes)
    agents = np.concatenate([np.arange(size) for size in sizes])
    for facts, look in ((agents, "get_color"), (runs, "get_linestyle")):
        looks = [getattr(line, look)() for line in regret.lines]
        assert len({*zip(facts, map(str, looks), strict=True)}) == len({*facts})
        assert len({*map(str, looks)}) == len({*facts})
    assert len(links.lines) == 2
    drawn = [line.get_ydata()[-1] for line in links.lines]
    cells = [swept().isel({other: 0}).sel({axis: value}) for value in values]
    assert drawn == [pytest.approx(float(x.links[:, -1].sum("meter").mean())) for x in cells]


def test_means_by_agent_are_explained():
    """Would catch equal lines without a word, and the word where they differ."""
    alike = "All agents have the same mean regret (CDP-MAB), to three digits; own_regret is against"
    assert alike in draw("agent_regret", agents=[0]).get_label()
    assert "have the same mean" not in draw("agent_own_regret", agents=[0]).get_label()
    assert "agent 0 is another agent in each seed" in draw("agent_own_regret").get_label()
    alone = draw("agent_regret", agents=[0], algorithm=[0])
    assert "All agents have the same mean regret, to" in alone.get_label()
    assert len(alone.axes[0].lines) == 3 and len(alone.axes[0].collections) == 1
    frame = fmab.table(select_regret(swept(), "agent_regret"))
    for name, is_said in (("cdp", True), ("single", False)):
        figure = fmab.plot_parameter(frame[frame.algorithm == name], "agents", "agent")
        assert ("have the same mean regret" in figure.get_label()) == is_said


def test_the_table_where_agents_differ_fits_a_line(stored, capsys):
    """Would catch fifteen columns, and one that is left out and not named."""
    assert main(["show", stored]) == 0
    lines = capsys.readouterr().out.split("\n")
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("Means over"))]
    assert max(map(len, table[1:])) <= 110
    frame = fmab.table(swept())
    names = frame.attrs["shown"]
    first = names.index("regret")
    assert names[first : first + 4] == ["regret", "own_regret", "largest_own_regret", "fairness"]
    rest = frame.attrs["unshown"]
    assert {"largest_regret", "rounds_made", "links_max"} <= {*rest} <= {*frame}
    assert (
        not {*rest} & {*names} and f"Not shown unless named as columns: {', '.join(rest)}." in lines
    )
    assert any("fairness: of regret, 1 if all agents have the same" in line for line in lines)
    assert main(["show", stored, "--columns", "rounds_made", "largest_own_regret"]) == 0
    assert "Not shown" not in capsys.readouterr().out


def test_an_interval_below_the_last_digit_is_left_out():
    """Would catch "1 ± 3.4e-09", and an interval that is left out although it can be read."""
    frame = pd.DataFrame({"fairness": [1.0, 1.0, 0.9, 1e6]})
    for end, sign in (("lower", -1), ("upper", 1)):
        frame[f"fairness_{end}"] = frame.fairness + sign * np.array([3.4e-9, 0.0, 0.01, 0.2])
    texts = fmab.show(frame, ["fairness"]).iloc[:, 0].tolist()
    assert texts == ["1", "1 ± 0", "0.9 ± 0.01", "1,000,000"]


def test_a_figure_of_agents_names_the_option_that_asks_for_it(tmp_path, monkeypatch, capsys):
    """Would catch a message on an option that nobody has typed."""
    monkeypatch.chdir(tmp_path)
    data = swept().isel(agents=0)
    fmab.save(data.drop_vars([name for name in data if "agent" in data[name].dims]), "old.nc")
    for words in ("--x algorithm --hue agent", "--x algorithm --y agent", "--curves --hue agent"):
        assert main(["plot", "old.nc", *words.split()]) == 2
        option = words.split()[-2]
        start = f"fmab: {option} agent: must be left out without agent_regret in the result; "
        assert capsys.readouterr().err.startswith(start)
    assert main("plot old.nc apart.nc --x algorithm".split()) == 2
    line = "fmab: apart.nc: must be left out: fmab plot takes one FOLDER|FILE.nc; "
    assert capsys.readouterr().err.startswith(line)
