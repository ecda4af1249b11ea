"""More algorithms slot by slot in plain Python, from the pseudo-code; slow, and nobody's loop.

Every function takes a `Chance` in place of random numbers, so that a run can be compared draw by
draw, with the very numbers that the package draws.
"""

import math
from statistics import NormalDist

import networkx as nx
import numpy as np
from index_twins import Run, blank, bound, looped, lowest_best


class Chance:
    """Uniforms from tables {(stream, columns): [slot, agent x columns]}; rewards are Bernoulli, or
    Gaussian of a deviation."""

    def __init__(self, means, tables, deviation=0.0):
        self.means, self.tables, self.deviation = means, tables, deviation

    def uniform(self, stream, slot, agent, column=0, columns=1):
        return self.tables[stream, columns][slot, agent * columns + column]

    def reward(self, slot, agent, arm):
        mean, u = (
            self.means[min(agent, len(self.means) - 1)][arm],
            self.uniform("reward", slot, agent),
        )
        return (
            mean + self.deviation * NormalDist().inv_cdf(u)
            if self.deviation
            else float(u > 1 - mean)
        )

    def laplace(self, stream, slot, agent, column=0, columns=1):
        u = self.uniform(stream, slot, agent, column, columns)
        return math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u))

    def beta(self, slot, agent, column, columns, ones, zeros):
        """Cheng's algorithm BB as he printed it, with the numbers of its tries."""
        tries = iter(self.tables["tries"][slot, agent * columns + column])
        least, most, both = min(ones, zeros), max(ones, zeros), ones + zeros
        scale = math.sqrt((both - 2) / (2 * ones * zeros - both)) if both > 2 else 1.0
        while True:
            first, second = next(tries), next(tries)
            v = scale * math.log(first / (1 - first))
            w = least * math.exp(v)
            r = (least + 1 / scale) * v - math.log(4)
            if r + both * math.log(both / (most + w)) >= math.log(first**2 * second):
                return w / (most + w) if ones == least else most / (most + w)


def uniform_play(chance, agents, arms, horizon):
    actions, pulls, sums = blank(horizon, agents, arms)
    for t in range(1, horizon + 1):
        for i in range(agents):
            k = int(chance.uniform("choose", t, i) * arms)
            actions[t - 1, i] = k
            pulls[i][k] += 1
            sums[i][k] += chance.reward(t, i, k)
    best = [[sums[i][k] / max(pulls[i][k], 1) for k in range(arms)] for i in range(agents)]
    return Run(actions, [], best, [set(range(arms))] * agents)


def thompson(chance, agents, arms, horizon, pooled=False):
    normal = NormalDist()

    def choose(t, i, pulls, sums):
        drawn = []
        for k in range(arms):
            deviate = normal.inv_cdf(chance.uniform("choose", t, i, k, arms))
            drawn.append(sums[k] / (pulls[k] + 1) + deviate / math.sqrt(pulls[k] + 1))
        return lowest_best(drawn)

    return looped(chance.reward, agents, arms, horizon, choose, pooled)


def kl(p, q):
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def maximize_mean(mean, distance):
    """By bisection."""
    if mean == 1.0:
        return 1.0
    low, high = mean, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle >= 1.0 or kl(mean, middle) > distance:
            high = middle
        else:
            low = middle
    return low


def kl_ucb(chance, agents, arms, horizon, constant=0.0, pooled=False):
    def choose(t, i, pulls, sums):
        log = math.log(agents * t if pooled else t)
        width = log + constant * math.log(max(log, 1.0))
        index = [
            maximize_mean(s / n, width / n) if n else math.inf
            for n, s in zip(pulls, sums, strict=True)
        ]
        # What two ways of solving for q leave open is no difference.
        return lowest_best([round(x, 7) for x in index])

    return looped(chance.reward, agents, arms, horizon, choose, pooled)


def ldp_ucb(chance, agents, arms, horizon, epsilon, bits=False, pooled=False):
    def choose(t, i, pulls, sums):
        time = agents * t if pooled else t
        few = [k for k in range(arms) if pulls[k] <= 4 * math.log(time + 1)]
        if few and not bits:
            return few[0]
        log = math.log(time)
        index = [bound(pulls[k], sums[k], 2 * log) for k in range(arms)]
        if not bits:
            index = [x + math.sqrt(32 * log / (epsilon**2 * pulls[k])) for k, x in enumerate(index)]
        return lowest_best([round(x, 11) for x in index])

    def released(t, i, k):
        reward = chance.reward(t, i, k)
        if not bits:
            return reward + chance.laplace("release", t, i) / epsilon
        kept = math.exp(epsilon) / (1 + math.exp(epsilon))
        one = reward * kept + (1 - reward) * (1 - kept)
        return float(chance.uniform("release", t, i) > 1 - one)

    return looped(released, agents, arms, horizon, choose, pooled)


def adap_index(t, mean, length, epsilon, alpha, kl):
    """Of one arm, from its last episode."""
    private = alpha * math.log(t) / (epsilon * length)
    if kl:
        clipped = min(max(mean + private, 0.0), 1.0)
        return maximize_mean(clipped, alpha * math.log(t) / length)
    return mean + math.sqrt(alpha * math.log(2 * t) / (2 * length)) + private


def lazy_dp_ts(chance, agents, arms, horizon, epsilon):
    actions = np.empty((horizon, agents), int)
    every = []
    for i in range(agents):
        pulls, mean, observed = [0] * arms, [0.0] * arms, [0] * arms
        buffer = [[] for _ in range(arms)]
        for t in range(1, horizon + 1):
            drawn = []
            for k in range(arms):
                if not observed[k]:
                    drawn.append(math.inf)
                    continue
                m = min(max(mean[k] + 3 * math.log(t) / (epsilon * observed[k]), 0.0), 1.0)
                drawn.append(
                    chance.beta(t, i, k, arms, m * observed[k] + 1, (1 - m) * observed[k] + 1)
                )
            k = lowest_best(drawn)
            actions[t - 1, i] = k
            pulls[k] += 1
            buffer[k].append(chance.reward(t, i, k))
            if len(buffer[k]) == (2 * observed[k] or 1):
                observed[k] = len(buffer[k])
                mean[k] = (sum(buffer[k]) + chance.laplace("choose", t, i) / epsilon) / observed[k]
                buffer[k] = []
        every.append(pulls)
    return Run(actions, [], every, [set(range(arms))] * agents)


def lcc_ucb(chance, agents, arms, horizon, graph=None):
    share = -(-arms // agents)
    net = nx.complete_graph(agents) if graph is None else graph
    most = share + max(degree for _, degree in net.degree)
    sticky = [{(i * share + m) % arms for m in range(share)} for i in range(agents)]
    output = [set() for _ in range(agents)]
    actions = np.empty((horizon, agents), int)
    talks, t, part = [], 0, 0
    while t < horizon:
        length = most * (most + 1) * 2 ** (part // max(1, nx.diameter(net)))
        _, pulls, sums = blank(0, agents, arms)
        for here in range(1, min(length, horizon - t) + 1):
            for i in range(agents):
                mine = sticky[i] | output[i]
                index = [
                    bound(pulls[i][k], sums[i][k], 2 * math.log(here)) if k in mine else -math.inf
                    for k in range(arms)
                ]
                k = lowest_best(index)
                actions[t + here - 1, i] = k
                pulls[i][k] += 1
                sums[i][k] += chance.reward(t + here, i, k)
        t += length
        if t <= horizon:
            best = [lowest_best(n) for n in pulls]
            output = [{best[j] for j in net[i]} for i in range(agents)]
            pulls = [[0] * arms for _ in range(agents)]
            talks.append(t)
        part += 1
    playing = [sticky[i] | output[i] for i in range(agents)]
    return Run(actions, talks, pulls, playing)


def most_around(own, theirs, beside):
    """The largest of an agent's own number and those of its neighbours, arm by arm."""
    rows = ([mine, *(theirs[j] for j in beside[i])] for i, mine in enumerate(own))
    return [list(map(max, zip(*row, strict=True))) for row in rows]


def dec_ucb(chance, agents, arms, horizon, graph, reach=None):
    """``reach`` has the neighbours of each agent by slot, if links come and go."""
    actions, pulls, sums = blank(horizon, agents, arms)
    _, m, z = blank(0, agents, arms)
    talks = []
    for t in range(1, horizon + 1):
        beside = reach[t] if reach else [sorted(graph[i]) for i in range(agents)]
        size = [len(x) + 1 for x in beside]
        change = [[0.0] * arms for _ in range(agents)]
        for i in range(agents):
            late = [k for k in range(arms) if pulls[i][k] and pulls[i][k] <= m[i][k] - arms]
            if late:
                k = late[int(chance.uniform("choose", t, i) * len(late))]
            else:
                width = 3 * math.log(t)
                index = [z[i][k] + bound(size[i] * pulls[i][k], 0.0, width) for k in range(arms)]
                # Sums over neighbours in another order are no difference.
                k = lowest_best([round(x, 13) for x in index])
            actions[t - 1, i] = k
            old = sums[i][k] / pulls[i][k] if pulls[i][k] else 0.0
            pulls[i][k] += 1
            sums[i][k] += chance.reward(t, i, k)
            new = sums[i][k] / pulls[i][k]
            m[i][k] = max(m[i][k], pulls[i][k])
            if t <= arms:
                z[i][k] = new
            else:
                change[i][k] = new - old
        if t > arms:
            talks.append(t)
            weight = [[1 / max(size[i], size[j]) for j in beside[i]] for i in range(agents)]
            z = [
                [
                    (1 - sum(weight[i])) * z[i][k]
                    + sum(w * z[j][k] for w, j in zip(weight[i], beside[i], strict=True))
                    + change[i][k]
                    for k in range(arms)
                ]
                for i in range(agents)
            ]
            m = most_around(m, m, beside)
    return Run(actions, talks, pulls, [set(range(arms))] * agents)


class Tree:
    """The binary mechanism of one stream: every block keeps the noise that it was given first."""

    def __init__(self, draw):
        self.draw, self.blocks, self.count = draw, [], 0

    def noise_of_next(self):
        """Of the sum of one number more: blocks of equal length become one, with noise anew."""
        self.count, length = self.count + 1, 1
        while self.blocks and self.blocks[-1][0] == length:
            self.blocks.pop()
            length *= 2
        self.blocks.append((length, self.draw(self.count)))
        return sum(noise for _, noise in self.blocks)


def trees(chance, agents, arms):
    """One for each agent and arm."""

    def tree(i, k):
        return Tree(lambda last: chance.laplace("lasting", last, i, k, arms))

    return [[tree(i, k) for k in range(arms)] for i in range(agents)]


def gossip_ucb(chance, agents, arms, horizon, graph, scaled=False, epsilon=None):
    """With an epsilon, Fed_UCB."""
    beside = [sorted(graph[i]) for i in range(agents)]
    factor = 1 if scaled else agents
    noise = trees(chance, agents, arms)
    levels = math.ceil(math.log2(horizon + 1))
    actions = np.empty((horizon, agents), int)
    n, x, v = ([[0.0] * arms for _ in range(agents)] for _ in range(3))
    sums, heard = ([[0.0] * arms for _ in range(agents)] for _ in range(2))
    talks = []
    for t in range(1, horizon + 1):
        change = [[0.0] * arms for _ in range(agents)]
        for i in range(agents):
            late = [k for k in range(arms) if n[i][k] < heard[i][k] - agents]
            if late:
                k = late[int(chance.uniform("choose", t, i) * len(late))]
            elif t <= arms:
                k = t - 1
            else:
                index = []
                for j in range(arms):
                    inside = 1 / n[i][j]
                    if epsilon:
                        logs = math.log(horizon) ** 2 * math.log(t) * math.log(n[i][j])
                        inside += 128 * agents * logs / (n[i][j] * epsilon) ** 2
                    index.append(v[i][j] + math.sqrt(2 * factor * inside * math.log(t)))
                # Products in another order are no difference.
                k = lowest_best([round(value, 11) for value in index])
            actions[t - 1, i] = k
            n[i][k] += 1
            sums[i][k] += chance.reward(t, i, k)
            output = sums[i][k]
            if epsilon:
                output += noise[i][k].noise_of_next() * levels / epsilon
            if t <= arms:
                v[i][k], heard[i][k] = output / n[i][k], 1.0
            else:
                change[i][k] = output / n[i][k] - x[i][k]
            x[i][k] = output / n[i][k]
        if t > arms:
            talks.append(t)
            if graph.number_of_edges():
                first = int(chance.uniform("talk", t, 0) * agents)
                second = beside[first][int(chance.uniform("talk", t, 1) * len(beside[first]))]
                both = [(v[first][k] + v[second][k]) / 2 for k in range(arms)]
                v[first], v[second] = both, list(both)
            v = [[v[i][k] + change[i][k] for k in range(arms)] for i in range(agents)]
            heard = most_around(n, heard, beside)
    return Run(actions, talks, n, [set(range(arms))] * agents)


def tree_ucb(chance, agents, arms, horizon, epsilon, split=False, failure=0.1):
    noise = trees(chance, agents, arms)
    own = epsilon / arms if split else epsilon
    levels, log = math.ceil(math.log2(horizon + 1)), math.log(horizon)
    covered = log**2 * math.log(arms * horizon * log / failure) / own
    actions = np.empty((horizon, agents), int)
    every = []
    for i in range(agents):
        n, total, output = [0] * arms, [0.0] * arms, [0.0] * arms
        for t in range(1, horizon + 1):
            index = [bound(n[k], output[k] + covered, 2 * math.log(t)) for k in range(arms)]
            k = lowest_best([round(value, 9) for value in index])
            actions[t - 1, i] = k
            n[k] += 1
            total[k] += chance.reward(t, i, k)
            output[k] = total[k] + noise[i][k].noise_of_next() * levels / own
        every.append(n)
    return Run(actions, [], every, [set(range(arms))] * agents)


def mixing_matrix(graph):
    """P = I - (D - A) / (d_max + 1)"""
    nodes = graph.number_of_nodes()
    beside = np.array([[float(graph.has_edge(i, j)) for j in range(nodes)] for i in range(nodes)])
    degree = beside.sum(axis=1)
    return np.eye(nodes) - (np.diag(degree) - beside) / (degree.max() + 1)


def mixing_steps(graph, error=1 / 22, accelerated=True):
    """C, and the second largest absolute eigenvalue of P."""
    size = sorted(abs(np.linalg.eigvals(mixing_matrix(graph))), reverse=True)
    second = size[1] if len(size) > 1 and size[1] > 1e-12 else 0.0
    if second == 0.0:
        return 1, second
    agents = graph.number_of_nodes()
    if accelerated:
        steps = math.log(2 * agents / error) / math.sqrt(2 * math.log(1 / second))
    else:
        steps = math.log(agents / error) / math.log(1 / second)
    return math.ceil(steps), second


def mixed(matrix, second, steps, values, accelerated=True):
    """The values after a stage: Chebyshev's recursion, scaled at the end as the paper has it."""
    if not accelerated or second == 0.0:
        return np.linalg.matrix_power(matrix, steps) @ values
    old, new, w_old, w_new = values, matrix @ values / second, 1.0, 1 / second
    for _ in range(steps - 1):
        old, new = new, 2 / second * matrix @ new - old
        w_old, w_new = w_new, 2 / second * w_new - w_old
    return new / w_new


def dducb(chance, agents, arms, horizon, graph, accelerated=True, eta=2.0, sigma=0.5):
    matrix = mixing_matrix(graph)
    steps, second = mixing_steps(graph, accelerated=accelerated)
    actions = np.empty((horizon, agents), int)
    own = np.zeros((2, agents, arms))

    def pull(t, i, k):
        actions[t - 1, i] = k
        return np.array([chance.reward(t, i, k), 1.0])

    for t in range(1, min(arms, horizon) + 1):
        for i in range(agents):
            own[:, i, t - 1] += pull(t, i, t - 1)
    alpha, beta = own / arms, own.copy()
    gamma, delta = np.zeros_like(own), np.zeros_like(own)
    t, s = arms, arms
    while t < horizon:
        for _ in range(steps):
            t += 1
            if t > horizon:
                break
            for i in range(agents):
                index = [
                    alpha[0, i, k] / alpha[1, i, k]
                    + math.sqrt(2 * eta * sigma**2 * math.log(s) / (agents * alpha[1, i, k]))
                    for k in range(arms)
                ]
                # Sums in another order are no difference.
                k = lowest_best([round(x, 11) for x in index])
                observed = pull(t, i, k)
                own[:, i, k] += observed
                gamma[:, i, k] += observed
                alpha[:, i, k] += observed / agents
            s += 1
        else:
            # All at once: what the steps of a stage come to.
            delta += [mixed(matrix, second, steps, x, accelerated) for x in beta]
            alpha, beta, gamma = delta.copy(), gamma, np.zeros_like(own)
            s = (t - steps) * agents
    pulls = own[1].astype(int).tolist()
    return Run(actions, list(range(arms + 1, horizon + 1)), pulls, [set(range(arms))] * agents)
