"""Numbers of README.md and of docs/, against the files or formulas that they come from.

What commands write between two comments is held against their tables by
`tests/experiments/test_pages.py`. Of the rest, every number that looks as if it was measured or
computed, with a decimal point or a unit, is held against a file or a formula, or is in `STATED`.
"""

import math
import re
from functools import cache
from pathlib import Path

import pytest
from pages import reader
from sizes import LARGE

import fmab_jax as fmab
from experiments import plans, race_laws
from experiments.audit.findings import RUNS
from experiments.card import suites
from fmab_jax.analysis.accountant import laplace_sum_epsilon, noise_epsilon
from fmab_jax.analysis.summary import BIN_WIDTH
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.planning.question import OVER
from fmab_jax.records.ledger import Noise
from fmab_jax.run import resources
from fmab_jax.sampling.laplace import share_epsilon

ROOT = Path(__file__).parents[2]


@cache
def rows_of(name):
    """Returns the rows of a table in figures/."""
    return reader.rows_of(ROOT / "figures" / f"{name}.csv")


def case(number, head):
    """Returns what a round of a case of table II takes."""
    return next(float(row[head]) for row in rows_of("table2_hybrid") if row["case"] == number)


def cases():
    """Returns the least and the most that case 3 costs over the hybrid cases, by edges."""
    head = "cost a round, links counted by edges"
    over = [case("3", head) / case(each, head) for each in "1245"]
    return [min(over), max(over)]


def printed_sizes():
    """Returns agents and costs of table II's case 2 with the sizes that the paper prints."""
    sizes, links = (63, 24, 10, 6, 7), 5 * 50
    edges = sum(n * (n - 1) // 2 for n in sizes)
    return [sum(sizes), edges + links, sum(sizes) - 5 + links]


def ledger():
    """Returns what an outsider, a message and an agent of the sum learn of CDP-MAB."""
    own = [row for row in rows_of("arena_ledger") if row["algorithm"] == "CDP-MAB"]
    actions = next(row for row in own if row["sees"] == "actions")
    sums = next(row for row in own if row["sees"].startswith("sums"))
    return [float(actions["ε up to δ"]), float(actions["ε"]), float(sums["ε up to δ"])]


def summed(leak, delta=1e-6, agents=50):
    """Returns what a message leaks in the sum of so many Laplace variables, up to delta."""
    return laplace_sum_epsilon(agents, 1 / leak, delta)


def composed(rewards, **noise):
    """Returns what rewards in so many different messages leak together, up to delta = 1e-6."""
    options = {"rewards": rewards, "distinct_messages": True}
    row, *_ = fmab.privacy_ledger(fmab.cdp_mab(**noise), LARGE["agents"], **options)
    return row.epsilon_at_delta


def shares():
    """Returns what an agent's share leaves of a secure sum: pure, and up to delta."""
    few = (50, 10, 5, 3)
    pure = [share_epsilon(1.0, agents - 1, agents) for agents in few]
    return [*pure, *(shared(agents - 1, agents) for agents in few), *half()]


def half():
    """Returns what half of the shares leave, up to delta."""
    return [shared(25, 50)]


def shared(left, number):
    """Returns what so many of the equal shares of a Laplace variable leave, up to delta."""
    return noise_epsilon((Noise(LAPLACE, 1.0, shares=(left, number)),), 1e-6)


def of_suites(sort):
    """Returns the fewest and the most seeds of a sort of algorithm in the benchmark's suites."""
    found = [each.seeds[sort] for each in suites.shipped().suites.values() if sort in each.seeds]
    return [min(found), max(found)]


def looks():
    """Returns how many looks 1,000 to 10⁶ seeds have, and the level of each in per cent."""
    number = len(fmab.until_precise(relative=0.01, max_seeds=10**6).looks(1000))
    return [number, 100 * (1 - 0.05 / number), 95.0]


def largest_bound():
    """Returns the bound of an event that all runs show, and none of the others.

    The chance of 10⁻⁶ is for two Clopper-Pearson limits, and for both orders of the data sets.
    """
    runs, level = 2_000_000, 1e-6 / 4
    return [math.log(level ** (1 / runs) / (1 - level ** (1 / runs)))]


def budget(head):
    """Returns the number that the plans at six budgets, which all hold, have under a head."""
    rows = rows_of("plans")[:6]
    assert all(row["holds"] == "True" for row in rows)
    (number,) = {float(row[head]) for row in rows}
    return number


README = "README.md: Speed"
OPEN = "docs/reproduction.md: What changes under another reading"
FOUND = "docs/reproduction.md: What was found"
SEES, PROMISES, LEAKS = (
    f"docs/privacy.md: {head}"
    for head in ("Who sees what", "What epsilon promises", "The leak of a result")
)
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-3}
DONE, AUDIT = (f"docs/privacy_audit.md: {head}" for head in ("What is done", "What it finds"))
PRIVATE, KLSE = "docs/semantics.md: Privacy", "docs/theory.md: KL-SE"
SUITES = "docs/benchmark.md: The suites, version 1"
TRUE, PLANS = (
    f"docs/plan.md: {head}" for head in ("Is it true?", "Six budgets and a small network")
)
MEMORY = "docs/gpu.md: Batches and memory"
BINS, LOOKS = (
    f"docs/sweeps.md: {head}" for head in ("Curves or a summary", "Until it is precise enough")
)
N = r"([\d,.]*\d)"
# Section, what stands there once, and the values of its groups.
SOURCES = (
    (TRUE, rf"stops at {N} seeds of a candidate", lambda: [race_laws.MOST]),
    (
        PLANS,
        rf"{N} agents, {N} arms.*?within {N} % of the best.*?over {N} fresh seeds",
        lambda: [*map(budget, ("agents", "arms")), 100 * budget("within"), budget("seeds")],
    ),
    (
        PLANS,
        rf"With {N}\s+links a run has at most {N} rounds",
        lambda: [plans.QUESTIONS[0].links, plans.QUESTIONS[0].links // plans.QUESTIONS[0].agents],
    ),
    (OPEN, rf"By edges, case 3 costs {N} to {N}\s+times the hybrid cases", cases),
    (
        OPEN,
        rf"for a complete graph of 100 needs {N} hops and one server link",
        lambda: [case("3", "links a round, counted by hops to the sink")],
    ),
    (OPEN, rf"with {N} agents, would cost {N} \(edges\) or {N} \(hops\)", printed_sizes),
    (
        SEES,
        rf"outsider {N} in place of {N} at \$\\delta = 10\^\{{-6\}}\$\. An agent of the sum takes "
        rf"out its own noise, and {N} is left",
        ledger,
    ),
    (
        PROMISES,
        rf"At \$\\varepsilon = 0\.1\$ probabilities differ by\s+at most {N} %, and at "
        rf"\$\\varepsilon = 1\$ by a factor of at most {N}\.",
        lambda: [100 * (math.exp(0.1) - 1), math.e],
    ),
    (
        PROMISES,
        rf"With \$N = 50\$ and a message that leaks 5,\s+the sum leaks {N} of one reward up to\s+"
        rf"\$\\delta = 10\^\{{-6\}}\$\. Two rewards leak {N}, not twice {N}, which is {N}\.",
        lambda: [summed(5), summed(10), summed(5), 2 * summed(5)],
    ),
    (
        PROMISES,
        rf"nine rewards\s+behind Gaussian noise, each of which leaks 1 up to \$10\^\{{-6\}}\$, "
        rf"leak {N} together, and fifty behind Laplace noise of 0\.1 leak {N}\.",
        lambda: [
            composed(9, epsilon_message=1, mechanism="gaussian"),
            composed(50, epsilon_message=0.1),
        ],
    ),
    (
        LEAKS,
        rf"noise that leaks 1 up to \$10\^\{{-3\}}\$ leaks {N} up to \$10\^\{{-6\}}\$",
        lambda: [fmab.find_leak(fmab.cdp_mab(epsilon_message=1, **GAUSSIAN), LARGE["agents"])],
    ),
    *(
        (
            SEES,
            rf"\| {leak} \| {N} \| {N} \| {N} \|",
            lambda leak=leak: [summed(leak, delta) for delta in (1e-6, 1e-9, 1e-12)],
        )
        for leak in (50, 5, 1)
    ),
    (DONE, rf"\*\*Runs\.\*\* {N} for each data set", lambda: [RUNS]),
    (
        PRIVATE,
        rf"it is {N}, {N} and {N}\s+for \$\\varepsilon = 1\$, 0\.1 and 0\.02, where",
        lambda: [summed(50), summed(5), summed(1)],
    ),
    (
        PRIVATE,
        rf"hide the others from it: {N}, {N} and {N}\.",
        lambda: [summed(leak, agents=49) for leak in (50, 5, 1)],
    ),
    (
        PRIVATE,
        rf"and one agent {N}, {N}, {N} and {N} at\s+\$M = 50\$, 10, 5 and 3; none .*?"
        rf"it is {N}, {N}, {N} and {N}, and {N} where half are known",
        shares,
    ),
    (TRUE, rf"confidence is\s+{N} %", lambda: [100 * race_laws.CONFIDENCE]),
    (
        TRUE,
        rf"loses {N} in {N} % of them",
        lambda: [race_laws.CATASTROPHE, 100 * race_laws.CHANCE],
    ),
    (
        TRUE,
        rf"\| 100 within {N} % \| one is best",
        lambda: [max(race_laws.many().means) - min(race_laws.many().means)],
    ),
    (
        TRUE,
        rf"exceed the budget, in {N} % and in {N} % of their runs",
        lambda: [100 * share for share in race_laws.infeasible().over[:2]],
    ),
    (TRUE, rf"cut at {N} times the best mean", lambda: [race_laws.CUT]),
    (TRUE, rf"loses nothing in {N} % of its runs", lambda: [100 * race_laws.LUCKY]),
    (TRUE, rf"in more than {N} % of their seeds", lambda: [100 * OVER]),
    (KLSE, rf"shares of half\s+of them keep to {N} at", half),
    (KLSE, rf"At a level of 20 that takes {N} off", lambda: [math.log(21)]),
    (SUITES, rf"Eliminations have {N} to {N} seeds", lambda: of_suites("rounds")),
    (SUITES, rf"Episodes have {N} to {N}, but none", lambda: of_suites("episodes")),
    (
        SUITES,
        rf"with {N} seeds where one policy stands for all\s+agents, else with {N}:",
        lambda: [of_suites("shared")[0], of_suites("slots")[0]],
    ),
    (BINS, rf"bins are {N} % wide", lambda: [100 * BIN_WIDTH]),
    (LOOKS, rf"from 1000 to 10\^6 seeds: {N}, so {N} %\): .*? cover with at least {N} %", looks),
    (MEMORY, rf"may take\s+{N} % of what JAX may use", lambda: [100 * resources.BATCHES]),
    (DONE, rf"From 2,000,000 runs no bound above\s+{N} can come", largest_bound),
)


# Numbers that are neither measured nor computed, wherever they stand.
STATED = (
    (r"Beside p = 0\.4, a ring", "which case"),
    (r"arXiv \d{4}\.\d{5}", "a paper"),
    (r"Python 3\.\d+", "of pyproject.toml"),
    (r"\b9[59] % (confidence\s+)?(intervals?|bands?)|\b95 % \(Bonferroni\)|at\s+95 %", "a level"),
    (r"tolerance of\s+t = 5 %", "the rule of verdicts"),
    (r"at leaks of 0\.1, 1 and 10", "of suites.toml"),
    (r"the second best 0\.01 behind", "of suites.toml"),
    (r"figure 9: 0\.5", "the paper's own number"),
    (r"By lemma 2\.8 of", "a source"),
    (r"local means up to 3\.3\s+around global means of 0\.7 to 0\.79", "the authors' setting"),
    (r"at most 1 % of\s+the mean", "the example of the command"),
    (r"level 1 - 0\.05 / L", "a formula"),
    (r"by default 3 times|about 2 GB", "what Dask does, and advice"),
    (r"off less than 0\.09 wherever|off less than 1\.6 wherever", "asked by tests of the evidence"),
    (r"0\.1 and 0\.02, where", "a condition"),
    (r"JAX takes 75 % of a GPU's memory", "what JAX does"),
    (r"Version 0\.2\.0 computed 1,107,429 trials/s", "measured then"),
    (r"S\. Boyd.*?52\(6\), 2006", "a source"),
)
# A number with a decimal point, or with a unit.
MEASURED = (
    r"(?<![\w.^-])(?:\d[\d,]*\.\d+|\d[\d,.]*\s*(?:%|times\b|x\b|m?s\b|ns\b|(?:micro)?seconds?\b|"
    r"minutes?\b|hours?\b|[KMG]i?B\b))"
)


def sections():
    """Returns the text of every section, by page and head: what no command writes, without
    comments and links' targets."""
    found = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path.name == "twins.md":  # a command writes all of it
            continue
        text = re.sub(r"<!-- written by .*?<!-- end -->", "", path.read_text("utf-8"), flags=re.S)
        text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
        text = re.sub(r"```.*?```|\]\([^)\s]*\)", "]", text, flags=re.S)
        for part in re.split(r"^##? ", text, flags=re.M):
            head, _, body = part.partition("\n")
            found[f"{path.relative_to(ROOT).as_posix()}: {head}"] = body
    return found


def faults(texts):
    """Returns what is wrong with the numbers of these sections, a sentence each."""
    found, left = [], dict(texts)
    for section, pattern, values in SOURCES:
        places = list(re.finditer(pattern, texts[section], re.S))
        if len(places) != 1:
            found.append(f"{section}: {len(places)} times {pattern}")
            continue
        left[section] = re.sub(pattern, "", left[section], flags=re.S)
        for text, value in zip(places[0].groups(), values(), strict=True):
            if not reader.same(text, value):
                found.append(f"{section}: {text} in {places[0][0]!r} is {value}")
    for section in left:
        text = left[section]
        # Of formulas and of what is typed no number is measured.
        for each in (r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", *(stated for stated, _ in STATED)):
            text = re.sub(each, "", text, flags=re.S)
        for line in text.split("\n"):
            if number := re.search(MEASURED, line):
                found.append(f"{section}: {number[0]} has no source, in {line!r}")
    return found


def test_every_number_of_a_page_is_that_of_its_file():
    """Would catch a stale number, one changed by hand, and a new one without a source."""
    assert faults(sections()) == []


def test_bounds_on_failures_are_what_their_formula_gives():
    """Would catch a constant of docs/theory.md that its own formula passes, or one far above it."""
    page = " ".join((ROOT / "docs" / "theory.md").read_text("utf-8").split())

    def times_t(agents, T):
        """Returns T times the q of the page, K = 100, over epochs that have room in T."""
        found, epochs = (800 * T) ** -2, math.log2(agents * T / (16 * math.log(16 * T))) / 2
        for r in range(1, max(1, math.floor(epochs)) + 2):
            t = 2 * r * math.sqrt(8 * agents * math.log(800 * r**2 * T))
            x = t / (2 * agents * r + math.hypot(2 * agents * r, t))
            found += math.exp(-x * t - 2 * agents * r * math.log1p(-(x**2)))
            found += (r > 1) * r**-4 * sum(a**-3 for a in range(2, 101)) / (64 * T)
        return T * found

    many = [times_t(agents, T) for agents in (5, 50, 500) for T in (1e4, 1e6, 1e9)]
    epochs = [
        r * 0.5**r * math.sqrt(2 * math.log(800 * r**2 * 1e4) / 50) / math.log(16 * r**2 * 1e4)
        for r in range(1, 20)
    ]
    for pattern, value in (
        (r"\$q\$ is below \$([\d.]+) \\cdot 10\^\{-4\} / T\$", 1e4 * max(many)),
        (r"is lost with a probability of at most \$([\d.]+) / T\$", 99 * max(many)),
        (r"For \$N = 1\$ and \$T = 10\^6\$ it is \$([\d.]+) / T\$", 99 * times_t(1, 1e6)),
        (r"\$\\varepsilon\^\* < ([\d.]+)\$ in every epoch", max(epochs)),
    ):
        (told,) = re.findall(pattern, page)
        assert value <= float(told) * 1.003 and float(told) <= 1.05 * value, (pattern, value)


def test_the_note_says_of_how_many_seeds_none_lost():
    """Would catch "no seed loses the best arm" where another number of seeds was run."""
    note = " ".join((ROOT / "docs" / "note.md").read_text("utf-8").split())
    radii = [row for row in rows_of("arena_radius") if row["factor of the radius"]]
    (seeds,) = {int(row["seeds"]) for row in radii}
    safe = [row for row in radii if row["seeds that lost the best arm"] == "0"]
    assert {row["ε"] for row in safe} == {row["ε"] for row in radii}
    assert f"none of {seeds:,} seeds loses the best arm" in note
    assert f'"Lost no best arm" is of {seeds:,} seeds for each leak and radius' in note


def test_the_loss_of_the_example_is_that_of_the_authors_setting():
    """Would catch a loss in the example of docs/semantics.md that the setting's run had not."""
    page = (ROOT / "docs" / "semantics.md").read_text("utf-8")
    (told,) = re.findall(r"\)  # about ([\d,]+)\n", page)
    (row,) = (
        row for row in rows_of("arena_settings") if row["setting"].startswith("M = 5, f = 138")
    )
    assert "fmab.fed1_ucb(pulls=138)" in page and row["regret of"] == "all agents, with links"
    assert reader.same(told, float(f"{float(row['regret at T']):.3g}"))


@pytest.mark.slow
def test_the_sentence_of_a_comparison_is_that_of_its_code():
    """Would catch an example of docs/report.md whose numbers another run had."""
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    problem = fmab.Problem.uniform(**LARGE)
    assert "problem = fmab.Problem.uniform(agents=50, arms=100)" in page
    data = fmab.sweep("cdp", problem, epsilon=[0.1, 1, None], horizon=10**5, seeds=200)
    assert 'fmab.sweep("cdp", problem, epsilon=[0.1, 1, None], horizon=10**5, seeds=200)' in page
    told = fmab.compare(data.sel(epsilon=0.1), data.sel(epsilon=1)).sentence
    assert f"# {told}\n" in page.replace("\xa0", " ")
