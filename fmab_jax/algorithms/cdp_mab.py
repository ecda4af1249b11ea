"""CDP-MAB: a server hears ceil(p M) agents a round (Algorithm 1 and section IV-B).

Its epochs, radius and noise are in families/paper.py; the loop is fmab_jax/elimination.py.
"""

from dataclasses import dataclass

from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.algorithms.families.server import OverServer


@dataclass(frozen=True)
class CDP(OverServer, PaperElimination):
    """Centralised: a server hears ceil(p M) agents a round.

    See `OverServer` for its parameters; the paper's is ``participation``.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
        >>> fmab.cdp_mab(1.0, participation=0.4).exchange(5).reporting  # ceil(p M)
        2
    """

    name = "cdp"
    title = "CDP-MAB"
    examples = ("--epsilon 0.1 0.3 0.5 1 --out eps", "--participation 0.4 --rounds 3")
