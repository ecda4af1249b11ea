"""The arena: every algorithm of the package on the paper's instance, with one set of meters.

Parts (a) to (c) of four files: regret over time and against what is sent (a), regret at an equal
leak (b), and agents that differ (c). The authors' own settings are in `arena_settings`, what the
protocols of DDP-MAB send is in `arena_protocols`; `arena_report` says who wins where.

Everybody plays the same instances: 50 agents, 100 arms, means drawn anew for each seed. Algorithms
that step through slots run with all seeds up to T = 10^4, with a tenth of them up to T = 10^5, and
not beyond. Of those whose agents are alone, five agents stand for fifty: given the means agents are
independent and alike, so that ten times the regret of five has the same expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.words import whole
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

AGENTS, ARMS = 50, 100
STAND_INS = 5
EPSILON = 1.0
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
SPREADS = {"agents alike": 0.0, "agents differ": 1.0}
REFERENCE = "cdp"
DELTA = 1e-6

# Who is trusted, and with what: the groups of the figures.
TRUST = {
    "open": "others, with rewards or means",
    "names": "others, with names of arms",
    "sum": "a secure sum",
    "message": "nobody: messages are noisy",
    "reward": "nobody: every reward is noisy",
    "alone": "nobody: nothing is told",
}
COLOUR = dict(zip(TRUST, (style.COLOURS[i] for i in (1, 4, 3, 0, 5, 2)), strict=True))
MARKER = dict(zip(TRUST, ("s", "D", "P", "o", "v", "^"), strict=True))


class Entry(NamedTuple):
    """A contestant.

    Attributes:
        label: In figures and tables.
        algorithm: As its authors would set it, at epsilon = 1 where it is private.
        trust: Who is trusted, a key of `TRUST`.
    """

    label: str
    algorithm: Any
    trust: str

    @property
    def steps(self) -> bool:
        """Whether it steps through slots."""
        return isinstance(self.algorithm, fmab.IndexPolicy)

    @property
    def agents(self) -> int:
        """How many agents are run; where they are alone and alike, few stand for all."""
        return STAND_INS if self.steps and self.alone else AGENTS

    @property
    def alone(self) -> bool:
        """Whether nobody hears anybody."""
        return bool(self.algorithm.exchange(AGENTS).alone)

    def seeds(self, horizon: int, seeds: int) -> int:
        """Returns how many seeds are run; 0 for none."""
        if not self.steps or horizon <= 10**4:
            return seeds
        return max(2, seeds // 10) if horizon <= 10**5 else 0


LINE_UP = {
    "cdp": Entry("CDP-MAB", fmab.cdp_mab(EPSILON), "message"),
    "ddp": Entry("DDP-MAB, ring", fmab.ddp_mab(EPSILON, "ring"), "message"),
    "hdp": Entry("HDP-MAB, 10 stars of 5", fmab.hdp_mab(EPSILON, "5x10:star"), "message"),
    "fed_ucb": Entry(
        "Fed_UCB, ring, scaled", fmab.fed_ucb(EPSILON, "ring", radius="scaled"), "message"
    ),
    "dist_dp_se": Entry("Dist-DP-SE", fmab.dist_dp_se(EPSILON), "sum"),
    "ldp_ucb_pooled": Entry("LDP-UCB-L, pooled", fmab.ldp_ucb(EPSILON, pooled=True), "reward"),
    "ldp_bits_pooled": Entry(
        "LDP-UCB-B, pooled", fmab.ldp_ucb(EPSILON, bits=True, pooled=True), "reward"
    ),
    "ldp_ucb": Entry("LDP-UCB-L, alone", fmab.ldp_ucb(EPSILON), "reward"),
    "ldp_bits": Entry("LDP-UCB-B, alone", fmab.ldp_ucb(EPSILON, bits=True), "reward"),
    "ucb1_pooled": Entry("UCB1, pooled", fmab.ucb1(pooled=True), "open"),
    "thompson_pooled": Entry("Thompson, pooled", fmab.thompson(pooled=True), "open"),
    "kl_ucb_pooled": Entry("KL-UCB, pooled", fmab.kl_ucb(pooled=True), "open"),
    "fed1_ucb": Entry("Fed1-UCB, f = 5", fmab.fed1_ucb(pulls=5), "open"),
    "dducb": Entry("DDUCB, ring", fmab.dducb("ring"), "open"),
    "gossip_ucb": Entry(
        "Gossip_UCB, ring, scaled", fmab.gossip_ucb("ring", radius="scaled"), "open"
    ),
    "dec_ucb": Entry("Dec_UCB, ring", fmab.dec_ucb("ring"), "open"),
    "gosine": Entry("GosInE", fmab.gosine(), "names"),
    "lcc_ucb": Entry("LCC-UCB", fmab.lcc_ucb(), "names"),
    "lcc_ucb_graph": Entry("LCC-UCB, ring", fmab.lcc_ucb("ring"), "names"),
    "single": Entry("CDP-MAB alone", fmab.single_mab(EPSILON), "alone"),
    "dp_se": Entry("DP-SE", fmab.dp_se(EPSILON), "alone"),
    "adap_ucb": Entry("AdaP-UCB", fmab.adap_ucb(EPSILON), "alone"),
    "tree_ucb": Entry("Private UCB (tree)", fmab.tree_ucb(EPSILON), "alone"),
    "ucb1": Entry("UCB1", fmab.ucb1(), "alone"),
    "thompson": Entry("Thompson sampling", fmab.thompson(), "alone"),
    "kl_ucb": Entry("KL-UCB", fmab.kl_ucb(), "alone"),
    "uniform_play": Entry("uniform play", fmab.uniform_play(), "alone"),
}
# Private, at a leak: what is asked for is the epsilon of what others are told; of those that tell
# nobody anything, the epsilon of what they do.
AT_LEAK: dict[str, Callable[[float], Any]] = {
    "cdp": lambda leak: fmab.cdp_mab(epsilon_message=leak),
    "ddp": lambda leak: fmab.ddp_mab(epsilon_message=leak, graph="ring"),
    "hdp": lambda leak: fmab.hdp_mab(epsilon_message=leak, components="5x10:star"),
    "dist_dp_se": fmab.dist_dp_se,
    "fed_ucb": lambda leak: fmab.fed_ucb(leak, "ring", radius="scaled"),
    "ldp_ucb_pooled": lambda leak: fmab.ldp_ucb(leak, pooled=True),
    "ldp_bits_pooled": lambda leak: fmab.ldp_ucb(leak, bits=True, pooled=True),
    "single": fmab.single_mab,
    "dp_se": fmab.dp_se,
    "adap_ucb": fmab.adap_ucb,
    "tree_ucb": fmab.tree_ucb,
    "ldp_ucb": fmab.ldp_ucb,
    "ldp_bits": lambda leak: fmab.ldp_ucb(leak, bits=True),
}
# Seeds, in (b) and (c), of those of which every agent steps through slots by itself.
FEW = 50


# Who takes part in a quick run: those that compile and run fast, of every group but one.
QUICK = (
    *("cdp", "ddp", "dist_dp_se", "ldp_bits_pooled", "ucb1_pooled", "fed1_ucb"),
    *("lcc_ucb", "ucb1", "uniform_play"),
)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(LINE_UP)
) -> dict[str, dict[str, Any]]:
    """Runs the three parts; returns, by part, results by contestant."""
    chosen = {name: LINE_UP[name] for name in names}
    found: dict[str, dict[str, Any]] = {"a": {}, "b": {}, "c": {}}
    for name, entry in chosen.items():
        number = entry.seeds(horizon, seeds)
        if number:
            found["a"][name] = _run(entry, entry.algorithm, 0.0, horizon, number, store, "a")
    for name, entry in chosen.items():
        if (maker := AT_LEAK.get(name)) is None:
            continue
        # Above T = 10^4 only those that take a moment.
        if entry.steps and horizon > 10**4:
            continue
        number = min(seeds, FEW) if entry.steps and not entry.algorithm.shared else seeds
        for leak in LEAKS:
            label = f"{name}, {leak:g}"
            kept = f"b{leak:g}"
            found["b"][label] = _run(entry, maker(leak), 0.0, horizon, number, store, kept)
    for name, entry in chosen.items():
        if getattr(entry.algorithm, "homogeneous_only", False):
            continue
        if entry.steps and horizon > 10**4:
            continue
        number = min(seeds, FEW) if entry.steps and not entry.algorithm.shared else seeds
        for words, spread in SPREADS.items():
            found["c"][f"{name}, {words}"] = _run(
                entry, entry.algorithm, spread, horizon, number, store, f"c{spread:g}"
            )
    return found


def _run(
    entry: Entry,
    algorithm: Any,
    spread: float,
    horizon: int,
    seeds: int,
    store: Path | None,
    kept: str,
) -> xr.Dataset:
    """Runs one contestant; its results are kept in a folder of their own."""
    # Agents that differ are not alike: nobody stands for anybody.
    agents = AGENTS if spread else entry.agents
    name = next(name for name, each in LINE_UP.items() if each is entry)
    data = fmab.sweep(
        type(algorithm),
        fmab.Problem.heterogeneous(agents, ARMS, spread),
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=None if store is None else store / f"{kept}-{name}",
        **stated(algorithm),
    )
    if agents < AGENTS:
        data = data.assign(
            regret=(data.regret * (AGENTS / agents)).assign_attrs(data.regret.attrs),
            agents_worse=data.agents_worse * (AGENTS / agents),
        )
    return data


def stated(algorithm: Any) -> dict[str, Any]:
    """Returns the parameters that are not the default."""
    return {name: getattr(algorithm, name) for name in algorithm.settings()}


def draw(results: Mapping[int, Mapping[str, Mapping[str, Any]]], folder: Path) -> list[Path]:
    """Draws the figures, and writes a table beside each."""
    written: list[Path] = []
    for horizon, parts in results.items():
        end = f"T{common.power(horizon)}"
        written += _draw_curves(parts["a"], horizon, folder, f"arena_regret_{end}")
        written += _draw_sent(parts["a"], horizon, folder, f"arena_links_{end}")
        written += _draw_leaks(parts["b"], horizon, folder, f"arena_leak_{end}")
        written += _draw_spreads(parts["c"], horizon, folder, f"arena_differ_{end}")
    return written


def _groups(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the contestants by trust."""
    found: dict[str, list[str]] = {trust: [] for trust in TRUST}
    for name in names:
        found[LINE_UP[name].trust].append(name)
    return {trust: members for trust, members in found.items() if members}


def seeds_in_words(parts: Mapping[str, Any]) -> str:
    """Returns how many seeds were run, of whom."""
    numbers = {name: data.sizes["seed"] for name, data in parts.items()}
    most = max(numbers.values())
    fewer = sorted({number for number in numbers.values() if number < most}, reverse=True)
    rest = " or ".join(whole(number) for number in fewer)
    return f"{whole(most)} seeds" + (f", {rest} of those that take long" if fewer else "")


def _instance(horizon: int, parts: Mapping[str, Any], shared: str = " and shared") -> str:
    return (
        f"M = {AGENTS} agents, K = {ARMS} arms, means U[0, 1] drawn for each seed{shared}, "
        f"T = {whole(horizon)} slots, {seeds_in_words(parts)}. Of agents that are alone, alike "
        f"and step through slots, {STAND_INS} stand for {AGENTS}"
    )


def _draw_curves(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret over time, a panel for everybody who is told the same."""
    groups = _groups(parts)
    figure, axes = common.panels(3, rows=2, height=2.7)
    bands = {each: fmab.confidence_band(data.regret, common.LEVEL) for each, data in parts.items()}
    for panel, trust in zip(axes.flat, TRUST, strict=True):
        first = bands[REFERENCE]
        panel.plot(first.time, first["mean"], color="0.6", linewidth=2.2, zorder=1)
        members = groups.get(trust, [])
        for index, each in enumerate(members):
            common.draw_bands(panel, {LINE_UP[each].label: bands[each]}, **style.look(index))
        panel.set(xscale="log", yscale="log", xlim=(100, horizon))
        panel.xaxis.set_minor_formatter(NullFormatter())
        low = min(float(band["mean"].sel(time=slice(100, None)).min()) for band in bands.values())
        high = max(float(band["mean"].max()) for band in bands.values())
        panel.set_ylim(0.8 * low, 1.3 * high)
        panel.set_title(TRUST[trust], fontsize=FONT, pad=3)
        panel.legend(**style.LEGEND, loc="upper left", handlelength=2.2)
    for row in axes:
        row[0].set_ylabel("regret (reward, sum over agents)", fontsize=FONT, labelpad=2)
    for each in axes[-1]:
        each.set_xlabel("slot t", fontsize=FONT, labelpad=2)
    caption = (
        f"{_instance(horizon, parts)}. Lines: means over the seeds; shaded: simultaneous 95 % "
        "bands. Above each panel: who is trusted. Grey, in every panel: CDP-MAB. Private "
        "algorithms at ε = 1 as each defines it (a message of CDP-MAB leaks 50); at an equal leak: "
        "arena_leak."
    )
    files = common.save(style.finish(figure, [], caption), folder, name)
    rows = [final_row(each, data, parts[REFERENCE]) for each, data in parts.items()]
    return [*files, *common.save_table(rows, folder, name, caption)]


def final_row(name: str, data: Any, reference: Any) -> dict[str, Any]:
    """Returns what there is to say of a contestant at the horizon; regret on common seeds."""
    last = data.isel(time=-1)
    shared = min(data.sizes["seed"], reference.sizes["seed"])
    mine = last.regret.values[:shared]
    theirs = reference.regret.isel(time=-1).values[:shared]
    entry = LINE_UP[name]
    leak = leaks(entry.algorithm)
    return {
        "algorithm": entry.label,
        "who is trusted": TRUST[entry.trust],
        "seeds": data.sizes["seed"],
        "regret at T": common.interval(last.regret.values),
        "minus CDP-MAB, same seeds": common.interval(mine - theirs),
        "links at T": common.interval(links(last)),
        "links without counts": common.interval(links(last, counts=False)),
        "numbers sent": common.interval(data.numbers_sent),
        "agents that play a worse arm at T": common.interval(data.agents_worse),
        "epsilon of messages": leak["messages"],
        "epsilon of actions": leak["actions"],
    }


def links(last: xr.Dataset, *, counts: bool = True) -> np.ndarray:
    """Returns, by seed, links on the meters that are priced; none where nobody talks.

    Edges that carry counts in every slot (Gossip_UCB, Fed_UCB) have a meter of their own, which
    their authors leave out.
    """
    if not last.sizes.get("meter"):
        return np.zeros(last.sizes["seed"])
    chosen = last.priced.values | (counts & (last.meter.values == "counts"))
    return last.links.isel(meter=np.flatnonzero(chosen)).sum("meter").values


def _scatter(axes: Axes, points: Mapping[str, tuple[float, tuple[float, float, float]]]) -> None:
    """Puts a labelled marker for each contestant, with its interval; nothing sent lies at 0."""
    for name, (x, (mean, lower, upper)) in points.items():
        trust = LINE_UP[name].trust
        error = [[mean - lower], [upper - mean]]
        axes.errorbar(
            [x],
            [mean],
            yerr=error,
            fmt=MARKER[trust],
            color=COLOUR[trust],
            markersize=4,
            elinewidth=0.8,
            linestyle="none",
        )


def _draw_sent(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T against links, and against numbers sent."""
    figure, axes = common.panels(2, height=4.2)
    rows = {each: final_row(each, data, parts[REFERENCE]) for each, data in parts.items()}
    places: list[tuple[Axes, dict[str, tuple[float, float]]]] = []
    for panel, meter in zip(axes[0], ("links at T", "numbers sent"), strict=True):
        points = {each: (row[meter][0], row["regret at T"]) for each, row in rows.items()}
        _scatter(panel, points)
        sent = np.array([x for x, _ in points.values()])
        panel.set_yscale("log")
        style.scale_values(panel, "x", sent)
        # The first power of ten would touch the 0.
        first, last = np.ceil(np.log10(sent[sent > 0].min())), np.log10(sent.max())
        panel.set_xticks([0.0, *10.0 ** np.arange(first + 1, last + 0.5)])
        places.append((panel, {each: (x, y[0]) for each, (x, y) in points.items()}))
        panel.set_xlabel(f"{meter} (mean over seeds)", fontsize=FONT, labelpad=2)
    axes[0, 0].set_ylabel("regret at T (reward, sum over agents)", fontsize=FONT, labelpad=2)
    handles = [
        Line2D([], [], marker=MARKER[t], color=COLOUR[t], linestyle="none", markersize=4, label=w)
        for t, w in TRUST.items()
    ]
    caption = (
        f"{_instance(horizon, parts)}. Markers: means over the seeds; bars: pointwise 95 % "
        "confidence intervals (Student t). Links: a two-way link counts once, broadcasts are free; "
        "links of completed rounds, of DDP-MAB diameter x edges a round, of Gossip_UCB and Fed_UCB "
        "those of counts as well. Numbers: reals and integers that all links carry. At 0: nothing "
        "is sent."
    )

    def label() -> None:
        for panel, points in places:
            _label(panel, points)

    files = common.save(style.finish(figure, handles, caption, fit=label), folder, name)
    table = [
        {
            "algorithm": row["algorithm"],
            "who is trusted": row["who is trusted"],
            "links at T": row["links at T"],
            "numbers sent": row["numbers sent"],
            "regret at T": row["regret at T"],
        }
        for row in rows.values()
    ]
    return [*files, *common.save_table(table, folder, name, caption)]


def _label(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Writes names beside markers, each at the nearest free height; a line leads to a far one."""
    figure = axes.figure
    for text in list(axes.texts):
        text.remove()
    dots = {name: axes.transData.transform(at) for name, at in points.items()}
    box, size, gap = axes.get_window_extent(), 6.0, 6.0
    line, unit = size * 1.15 * figure.dpi / 72, 72 / figure.dpi
    led: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.6", "shrinkA": 0.0}
    # Left edge, right edge and middle of what is written, and of the markers.
    taken = [(x - 4, x + 4, y) for x, y in dots.values()]
    for name in sorted(dots, key=lambda each: -dots[each][1]):
        x, y = dots[name]
        words = LINE_UP[name].label
        wide = style.text_size(words)[0] * figure.dpi * size / FONT
        left = x + gap if x + gap + wide <= box.x1 else x - gap - wide

        def free(height: float, left: float = left, wide: float = wide) -> bool:
            beside = (h for a, b, h in taken if a < left + wide and left < b)
            return box.y0 < height < box.y1 and all(abs(height - h) >= line for h in beside)

        steps = (y + sign * k * line / 4 for k in range(400) for sign in (1, -1))
        height = next((each for each in steps if free(each)), y)
        taken.append((left, left + wide, height))
        far = abs(height - y) > line
        axes.annotate(
            words,
            points[name],
            xytext=((left - x) * unit, (height - y) * unit),
            textcoords="offset points",
            fontsize=size,
            va="center",
            color=COLOUR[LINE_UP[name].trust],
            arrowprops=led | {"relpos": (float(left < x), 0.5)} if far else None,
        )


def _draw_leaks(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T against the epsilon of what others are told."""
    figure, axes = common.panels(2, height=3.4)
    members = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    told = [each for each in members if not LINE_UP[each].alone]
    alone = [each for each in members if LINE_UP[each].alone]
    rows = []
    for panel, names in zip(axes[0], (told, alone), strict=True):
        for index, each in enumerate(names):
            found = [common.interval(parts[f"{each}, {k:g}"].regret.isel(time=-1)) for k in LEAKS]
            mean, lower, upper = np.array(found).T
            error = [mean - lower, upper - mean]
            own = style.look(index) | {"marker": style.MARKERS[index], "markersize": 3.5}
            panel.errorbar(LEAKS, mean, yerr=error, label=LINE_UP[each].label, capsize=2, **own)
            for leak, value in zip(LEAKS, found, strict=True):
                data = parts[f"{each}, {leak:g}"]
                rows.append(
                    {
                        "algorithm": LINE_UP[each].label,
                        "epsilon": leak,
                        "of": "what others are told" if each in told else "what agents do",
                        "seeds": data.sizes["seed"],
                        "regret at T": value,
                        "agents that play a worse arm at T": common.interval(data.agents_worse),
                    }
                )
        panel.set(xscale="log", yscale="log")
        panel.legend(**style.LEGEND, loc="best", handlelength=2.4)
    axes[0, 0].set_xlabel("ε of what others are told", fontsize=FONT, labelpad=2)
    axes[0, 1].set_xlabel("ε of what an agent does, or releases", fontsize=FONT, labelpad=2)
    low = min(float(row["regret at T"][1]) for row in rows)
    high = max(float(row["regret at T"][2]) for row in rows)
    for panel in axes[0]:
        panel.set_ylim(0.8 * low, 1.3 * high)
    axes[0, 0].set_ylabel("regret at T (reward, sum over agents)", fontsize=FONT, labelpad=2)
    caption = (
        f"{_instance(horizon, parts)}. Regret at an equal leak. Left: ε bounds what one changed "
        "reward does to all that the best informed of the others is told; actions in the waiting "
        "slots of DDP-MAB on a ring have no finite ε. Right: agents alone; ε is that of actions, "
        "of LDP-UCB that of every reward. Bars: pointwise 95 % confidence intervals (Student t)."
    )
    files = common.save(style.finish(figure, [], caption), folder, name)
    return [*files, *common.save_table(rows, folder, name, caption)]


def _draw_spreads(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T with agents that are alike, and with agents that differ."""
    members = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    figure, axes = common.panels(1, height=0.25 + 0.17 * len(members))
    figure.set_size_inches(5.0, 0.5 + 0.17 * len(members))
    panel = axes[0, 0]
    found = {
        (each, words): common.interval(parts[f"{each}, {words}"].regret.isel(time=-1))
        for each in members
        for words in SPREADS
    }
    order = sorted(members, key=lambda each: -found[each, "agents differ"][0])
    rows = []
    for index, words in enumerate(SPREADS):
        values = np.array([found[each, words] for each in order]).T
        error = [values[0] - values[1], values[2] - values[0]]
        panel.errorbar(
            values[0],
            np.arange(len(order)) + 0.12 * (1 - 2 * index),
            xerr=error,
            fmt=style.MARKERS[index],
            color=style.COLOURS[index],
            markersize=3.5,
            elinewidth=0.8,
            label=words,
        )
    panel.set_xscale("log")
    panel.set_yticks(np.arange(len(order)), [LINE_UP[each].label for each in order])
    panel.set_xlabel("regret at T (reward, sum over agents, on global means)", fontsize=FONT)
    for each in order[::-1]:
        differ = parts[f"{each}, agents differ"]
        rows.append(
            {
                "algorithm": LINE_UP[each].label,
                "seeds": differ.sizes["seed"],
                "agents alike": found[each, "agents alike"],
                "agents differ": found[each, "agents differ"],
                "agents that play a worse arm, where they differ": common.interval(
                    differ.agents_worse
                ),
            }
        )
    share = common.disagreement(AGENTS, ARMS, SPREADS["agents differ"])
    caption = (
        f"{_instance(horizon, parts, '')}. Alike: agents share the means. Differ: with spread 1 "
        f"around them; the local best arm of {100 * share:.0f} % of the agents is not the global "
        "best, and regret counts gaps of global means. Bars: pointwise 95 % confidence intervals "
        "(Student t). Algorithms that are stated for agents alike only are left out."
    )
    handles, _ = panel.get_legend_handles_labels()
    files = common.save(style.finish(figure, handles, caption), folder, name)
    return [*files, *common.save_table(rows, folder, name, caption)]


def leaks(algorithm: Any, agents: int = AGENTS) -> dict[str, str]:
    """Returns the largest epsilon of what others are told, and that of actions, in words."""
    rows = fmab.privacy_ledger(algorithm, agents, delta=DELTA)
    actions = [row.epsilon for row in rows if row.what == "actions"]
    told = [row.epsilon for row in rows if row.what != "actions"]

    def words(found: list[float]) -> str:
        if not found:
            return "nothing is told"
        return "no bound" if np.isinf(max(found)) else f"{max(found):g}"

    return {"messages": words(told), "actions": words(actions)}
