"""One contender in a process of its own: reads ``go NUMBER`` line by line, answers in JSON.

The first repetition is the warm-up: it compiles, and is timed from the process's start.
"""

from __future__ import annotations

import time

STARTED = time.perf_counter()

import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402


def ours(given):
    """Returns a function of a repetition's number: seconds, CPU seconds, mean final regret."""
    import fmab_jax as fmab

    if "devices" in given:
        import jax

        jax.config.update("jax_num_cpu_devices", given["devices"])
    algorithm = getattr(fmab, given["algorithm"])(**given.get("options", {}))
    name, arguments = given["problem"]
    if name == "ratings":
        import numpy as np

        agents, arms, levels = arguments
        table = np.random.default_rng(0).dirichlet(np.ones(levels), arms)
        problem = fmab.Problem.ratings(list(range(1, levels + 1)), table, agents)
    else:
        problem = getattr(fmab.Problem, name)(**arguments)
    seeds, more = given["seeds"], given.get("more", {})

    def run(number):
        chosen = range(number * seeds, (number + 1) * seeds)
        data = fmab.simulate(algorithm, problem, given["horizon"], chosen, **more)
        run.compile_s = data.attrs["compile_s"]
        run.device = data.attrs["device"]
        return float(data.regret[:, -1].mean())

    return run


def theirs(given):
    """Likewise for a rival."""
    import numpy as np

    from benchmarks import rivals

    make = getattr(rivals, given["rival"])

    def run(number):
        rng = np.random.default_rng([number, given.get("process", 0)])
        return float(make(rng, given["seeds"], **given["arguments"]).mean())

    return run


def main():
    given = json.loads(sys.argv[1])
    run = ours(given) if "algorithm" in given else theirs(given)
    first = True
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        mean = run(int(line.split()[1]))
        now = time.perf_counter()
        answer = {"wall": now - wall, "cpu": time.process_time() - cpu, "mean": mean}
        if first:
            answer |= {"first": now - STARTED, "compile": getattr(run, "compile_s", 0.0)}
            answer["device"] = getattr(run, "device", "cpu")
            first = False
        answer["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
