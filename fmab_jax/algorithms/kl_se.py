"""KL-SE: elimination by likelihood from messages with noise."""

from dataclasses import dataclass, replace

from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.algorithms.families.noisy_messages import participation_parameter
from fmab_jax.algorithms.families.private import list_secure_sum, list_shares, secure_parameter
from fmab_jax.errors import refuse
from fmab_jax.parameters import Flag, parameter
from fmab_jax.parts.exchanges import Exchange, View, Viewer, server
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.records.ledger import Disclosure


@dataclass(frozen=True)
class KLSE(LikelihoodElimination):
    """KL-SE: arms leave by a likelihood ratio of pairs; a whole run leaks epsilon.

    A server adds up the noisy sums of all epochs, of the agents that report (see
    `LikelihoodElimination`). The best arm is lost with a probability of at most ``failure``, for
    rewards in [0, 1] and agents that are alike or all report.

    Attributes:
        secure: Whether a secure sum hides single messages, and adds one noise to all of them.
        split: Whether agents, which must be alike, split the arms: fewer of them pull an arm,
            each for longer, so that less noise is on it.
        participation: Share p of the agents that report in a round, in (0, 1].

    Example:
        Two agents of five report in a round. A run leaks epsilon, not N epsilon.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> algorithm = fmab.kl_se(0.5, participation=0.4)
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 2 * data.rounds_made).all())
        True
        >>> algorithm.privacy(algorithm.exchange(5))
        {'epsilon': 0.5, 'epsilon_message': 0.5}
    """

    name = "kl_se"
    title = "KL-SE"
    communication = "a server hears ceil(pM) agents a round, or a secure sum"
    trusted = "nobody: a message leaks at most its epsilon; or secure aggregation"
    examples = ("--epsilon 0.1 1 10 --out kl", "--growth 2 3 5 --split")

    secure: bool = secure_parameter("A secure sum hides single messages, with one noise on all.")
    split: bool = parameter(
        Flag(),
        "Each arm is pulled by some of the agents only; agents must share their means.",
        default=False,
        label="arms split",
    )
    participation: float = participation_parameter()

    def check(self) -> None:
        """Refuses a secure sum over some agents, and arms split among them."""
        super().check()
        if self.secure and self.noise != LAPLACE:
            remedy = "take laplace, or drop the secure sum"
            refuse("mechanism", self.noise.text(), "laplace over a secure sum", remedy)
        for name in ("secure", "split"):
            if getattr(self, name) and isinstance(self.epsilon, tuple):
                refuse(name, True, "False where agents differ in epsilon", "give one epsilon")
            if getattr(self, name) and self.participation < 1.0:
                remedy = "let everybody report, or drop it"
                refuse(name, True, "False where participation is below 1", remedy)

    sharing_flag = "split"

    @property
    def shares_arms(self) -> bool:
        """As `split` says."""
        return self.split

    @property
    def sums_securely(self) -> bool:  # type: ignore[override]
        """As `secure` says."""
        return self.secure

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of the server."""
        table = server(agents, self.participation)
        if self.secure:
            table = replace(table, views=(View(Viewer.SERVER, agents),))
        # Agents take consecutive parts of all pulls in the order of arms; each cut adds a number.
        return replace(table, vectors=1, numbers=agents - 1) if self.split else table

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers messages, or the secure sum, and all functions of them."""
        if self.secure:
            return list_secure_sum(self, exchange, "epochs are disjoint data, each with one noise")
        return super().ledger(exchange)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns the ledger rows of a coalition."""
        if self.secure:
            return list_shares(self, exchange, size)
        return super().coalition(exchange, size)
