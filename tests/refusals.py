"""The one line in which a call, a command or a study is refused, and the golden file of them.

``python tests/refusals.py --write`` writes tests/refusals.json: a row of door, input and line for
each case below. A change of wording is a change of that file alone.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from fmab_jax.errors import Refusal

GOLDEN = Path(__file__).with_suffix(".json")


def refused(call, *given, **named):
    """Returns the line of the refusal that a call must end in."""
    with pytest.raises(Refusal) as caught:
        call(*given, **named)
    line = str(caught.value)
    assert "\n" not in line
    return line


def refuses(words, call, *given, **named):
    """Asserts that a call is refused in a line in which a pattern is found."""
    line = refused(call, *given, **named)
    assert re.search(words, line), line


# --- the cases: a heading says which mistake those below it catch ---

# Expressions; a line that is indented goes on. Their names are those of `_names`.
PYTHON = r"""
# privacy that is no number, or noise without bound
fmab.cdp_mab(0)
fmab.cdp_mab(-1)
fmab.ddp_mab(nan)
fmab.hdp_mab(-inf)
fmab.single_mab(True)
fmab.cdp_mab('x')
fmab.cdp_mab(10**400)
fmab.cdp_mab(1j)
fmab.cdp_mab()
fmab.cdp_mab(1.0, epsilon_message=50.0)
fmab.cdp_mab(epsilon_message=0)

# a parameter of an algorithm out of its range, or of another algorithm
fmab.cdp_mab(1.0, rounds=0)
fmab.cdp_mab(1.0, rounds=2.5)
fmab.cdp_mab(1.0, rounds=nan)
fmab.cdp_mab(1.0, rounds=10**13)
fmab.cdp_mab(1.0, schedule_gap=0)
fmab.cdp_mab(1.0, schedule_gap=1.5)
fmab.cdp_mab(1.0, schedule_gap=inf)
fmab.dp_se(1.0, failure=inf)
fmab.cdp_mab(1.0, participation=0)
fmab.cdp_mab(1.0, participation=1.1)
fmab.cdp_mab(1.0, participation=nan)
fmab.hdp_mab(1.0, weights='sinks')
fmab.cdp_mab(epsilom=1)
fmab.ucb1(epsilon=1)
fmab.ddp_mab(1, 'ring', protocol='gissip')
fmab.ddp_mab(1, 'ring', tolerance=1)
fmab.ucb1(alpha=-1)

# truncation, a truth value or a text read as a number, a bound that is off, and NaN
fmab.cdp_mab(1.0, rounds=-1)
fmab.cdp_mab(1.0, rounds=100_001)
fmab.cdp_mab(1.0, rounds=0.5)
fmab.cdp_mab(1.0, rounds=9.999999)
fmab.cdp_mab(1.0, rounds=-inf)
fmab.cdp_mab(1.0, rounds=inf)
fmab.cdp_mab(1.0, rounds=1e300)
fmab.cdp_mab(1.0, rounds=-10**30)
fmab.cdp_mab(1.0, rounds=2**64)
fmab.cdp_mab(1.0, rounds=True)
fmab.cdp_mab(1.0, rounds=False)
fmab.cdp_mab(1.0, rounds=np.bool_(1))
fmab.cdp_mab(1.0, rounds='5')
fmab.cdp_mab(1.0, rounds=b'5')
fmab.cdp_mab(1.0, rounds='')
fmab.cdp_mab(1.0, rounds=[5])
fmab.cdp_mab(1.0, rounds=(5,))
fmab.cdp_mab(1.0, rounds={5})
fmab.cdp_mab(1.0, rounds=5j)
fmab.cdp_mab(1.0, rounds=Decimal(5))
fmab.cdp_mab(1.0, rounds=Fraction(7,2))
fmab.cdp_mab(1.0, rounds=np.float64(1.5))
fmab.cdp_mab(1.0, rounds=np.int64(-3))
fmab.cdp_mab(1.0, rounds=np.array(5))
fmab.cdp_mab(1.0, rounds=np.array([5]))
fmab.cdp_mab(1.0, rounds=10**400)
fmab.cdp_mab(1.0, rounds=10**5000)
fmab.cdp_mab(1.0, participation=-0.0)
fmab.cdp_mab(1.0, participation=-1)
fmab.cdp_mab(1.0, participation=2)
fmab.cdp_mab(1.0, participation=1+2**-52)
fmab.cdp_mab(1.0, participation=inf)
fmab.cdp_mab(1.0, participation=-inf)
fmab.cdp_mab(1.0, participation=True)
fmab.cdp_mab(1.0, participation=np.bool_(0))
fmab.cdp_mab(1.0, participation=None)
fmab.cdp_mab(1.0, participation='0.5')
fmab.cdp_mab(1.0, participation='0,5')
fmab.cdp_mab(1.0, participation=[0.5])
fmab.cdp_mab(1.0, participation=0.5j)
fmab.cdp_mab(1.0, participation=np.array(0.5))
fmab.cdp_mab(1.0, participation=10**400)
fmab.cdp_mab(1.0, participation=Fraction(1,10**400))
fmab.cdp_mab(1.0, participation=np.longdouble('1e4000'))
fmab.cdp_mab(1e308)
fmab.cdp_mab(1.0001e100)
fmab.cdp_mab(-10**400)

# a horizon that is none, or too long for the agents
fmab.simulate(CDP, PROBLEM, 0, 2)
fmab.simulate(CDP, PROBLEM, 99.5, 2)
fmab.simulate(CDP, PROBLEM, nan, 2)
fmab.simulate(CDP, PROBLEM, inf, 2)
fmab.simulate(CDP, PROBLEM, '100', 2)
fmab.simulate(CDP, PROBLEM, 10**12 + 1, 2)
fmab.simulate(CDP, PROBLEM, 10**400, 2)
fmab.simulate(CDP, fmab.Problem([0.9, 0.1], agents=10**6), 10**12, 2)
fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(2, 2), 10**8 + 1, 1)
fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(1000, 1000), 10**8, 1)

# a seed that is rounded, wrapped or read from text
fmab.simulate(CDP, PROBLEM, 100, 0)
fmab.simulate(CDP, PROBLEM, 100, -1)
fmab.simulate(CDP, PROBLEM, 100, 1.5)
fmab.simulate(CDP, PROBLEM, 100, True)
fmab.simulate(CDP, PROBLEM, 100, 10**8 + 1)
fmab.simulate(CDP, PROBLEM, 100, '10')
fmab.simulate(CDP, PROBLEM, 100, None)
fmab.simulate(CDP, PROBLEM, 100, [])
fmab.simulate(CDP, PROBLEM, 100, [-1])
fmab.simulate(CDP, PROBLEM, 100, [2**32])
fmab.simulate(CDP, PROBLEM, 100, [np.int64(2**32 + 1)])
fmab.simulate(CDP, PROBLEM, 100, range(2**32 - 1, 2**32 + 1))
fmab.simulate(CDP, PROBLEM, 100, [1.0])
fmab.simulate(CDP, PROBLEM, 100, np.array([2**63, -1]))
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=1e30)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=nan)
fmab.simulate(CDP, PROBLEM, 100, [True])
fmab.simulate(CDP, PROBLEM, 100, ['1'])
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=-1)
fmab.simulate(CDP, PROBLEM, 100, [3, 3])
fmab.simulate(CDP, PROBLEM, 100, [2**32 + 1])
fmab.simulate(CDP, PROBLEM, 100, [1.5])
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=2**32)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=2**32+1)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=2**63)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=1.5)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=1.0)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=True)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed='1')
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=None)
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=np.int64(2**32+1))
fmab.simulate(CDP, PROBLEM, 100, 2, root_seed=np.bool_(0))

# unsigned wrap-around of slots, NaN slots, slots beyond the horizon
fmab.simulate(CDP, PROBLEM, 100, 2, times=0)
fmab.simulate(CDP, PROBLEM, 100, 2, times=-5)
fmab.simulate(CDP, PROBLEM, 100, 2, times=10 ** 5 + 1)
fmab.simulate(CDP, PROBLEM, 100, 2, times=2.5)
fmab.simulate(CDP, PROBLEM, 100, 2, times=float('nan'))
fmab.simulate(CDP, PROBLEM, 100, 2, times=float('inf'))
fmab.simulate(CDP, PROBLEM, 100, 2, times=True)
fmab.simulate(CDP, PROBLEM, 100, 2, times='10')
fmab.simulate(CDP, PROBLEM, 100, 2, times=None)
fmab.simulate(CDP, PROBLEM, 100, 2, times=[])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[[1, 2]])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[[1], [1, 2]])
fmab.simulate(CDP, PROBLEM, 100, 2, times=['1'])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[True])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[None])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[1j])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[-1, 5])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[5, 101])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[5, 1.5])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[5, float('nan')])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[5, float('inf')])
fmab.simulate(CDP, PROBLEM, 100, 2, times=np.array([2 ** 63 + 5], np.uint64))
fmab.simulate(CDP, PROBLEM, 100, 2, times=[5, 5])
fmab.simulate(CDP, PROBLEM, 100, 2, times=[7, 5])
fmab.simulate(CDP, PROBLEM, 100, 2, times=np.array([7, 5], np.uint8))
fmab.simulate(CDP, PROBLEM, 10**6, 2, times=range(10 ** 5 + 1))
fmab.simulate(CDP, PROBLEM, 100, 2, times=5, spacing='lin')
fmab.simulate(CDP, PROBLEM, 100, 2, times=5, spacing=None)
fmab.simulate(CDP, PROBLEM, 100, 2, spacing='cubic')

# a batch of no seeds
fmab.simulate(CDP, PROBLEM, 100, 2, batch=0)
fmab.simulate(CDP, PROBLEM, 100, 2, batch=1.5)

# algorithms on problems that they are not for
fmab.simulate(fmab.gosine(), fmab.Problem.heterogeneous(4, 5), 100, 1)
fmab.simulate(fmab.gosine(nx.path_graph(3)), fmab.Problem.uniform(4, 5), 100, 1)
fmab.simulate(fmab.demab(), fmab.Problem.heterogeneous(3, 4, 0.5), 100, 2)
fmab.simulate(fmab.demab(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.ldp_ucb(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.adap_ucb(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.lazy_dp_ts(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.fed_ucb(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.tree_ucb(1.0), fmab.Problem.uniform(3, 4, rewards='gaussian:0.5'), 100, 2)
fmab.simulate(fmab.kl_se(1.0, split=True), PROBLEM, 100, 2, sum_agents=False)
fmab.simulate(fmab.demab(), PROBLEM, 100, 2, outputs=['pulls'])
fmab.simulate(fmab.kl_se(1.0, split=True), PROBLEM, 100, 2, outputs=['regret_by_agent'])

# outputs that there are not, or twice
fmab.simulate(CDP, PROBLEM, 100, 2, outputs='pulls')
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=['puls'])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=['regret'])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=['pulls', 'pulls'])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=[3])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=[fmab.Output('regret', '', '', len)])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=[fmab.Output('x', '', '', len, ('agent', 'time'))])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=[fmab.Output('x', '', '', len, ('meter',))])
fmab.simulate(CDP, PROBLEM, 100, 2, outputs=[fmab.Output('x', '', '', len, dtype=np.int64)])

# means, agents and arms that make no problem
fmab.Problem([0.5, 1.1], 2)
fmab.Problem([-0.1, 0.5], 2)
fmab.Problem([0.5, nan], 2)
fmab.Problem([0.5, inf], 2)
fmab.Problem([[0.5, 0.5], [0.5, 1 + 2**-52]])
fmab.Problem([[0.5, None]])
fmab.Problem([], 2)
fmab.Problem([[]])
fmab.Problem(0.5, 2)
fmab.Problem(np.zeros((2, 2, 2)))
fmab.Problem([[0.5], [0.5, 0.5]])
fmab.Problem('uniform', 2)
fmab.Problem({'a': 1}, 2)
fmab.Problem([0.5j], 2)
fmab.Problem([0.5, 0.4])
fmab.Problem([[0.5, 0.4], [0.1, 0.2]], 3)
fmab.Problem([0.5], 0)
fmab.Problem([0.5], 2.5)
fmab.Problem([0.5], True)
fmab.Problem([0.5], '5')
fmab.Problem.uniform(0, 3)
fmab.Problem.uniform(10**7 + 1, 3)
fmab.Problem.uniform(3, 0)
fmab.Problem.uniform(3, -2)
fmab.Problem.uniform(3, 10**6 + 1)
fmab.Problem.uniform(3, nan)
fmab.Problem.uniform(10**7, 1000)
fmab.Problem.heterogeneous(3, 4, -0.1)
fmab.Problem.heterogeneous(3, 4, 1.1)
fmab.Problem.heterogeneous(3, 4, nan)
fmab.Problem.heterogeneous(3, 4, '1')
fmab.Problem.with_gap(3, 4, 0.0)
fmab.Problem.with_gap(3, 4, 1.0)
fmab.Problem.with_gap(3, 4, 1e-10)
fmab.Problem.with_gap(3, 4, nan)
fmab.Problem.heterogeneous(3, 4, instance_gap=-1)
fmab.Problem.with_gap(3, 1, 0.1)
fmab.Problem.uniform(3, 4).fixed(2**32)
fmab.Problem.uniform(3, 4).fixed(0, -1)

# means that NumPy would read as something else
fmab.Problem(np.array([0.5 + 0.1j, 0.2]), 2)
fmab.Problem(np.array([0.5 + 0j, 0.2]), 2)
fmab.Problem(['0.5', '0.2'], 2)
fmab.Problem(np.array([b'0.5']), 2)
fmab.Problem(np.array([0.5, '0.2'], object), 2)
fmab.Problem([0.5, 10**400], 2)
fmab.Problem([0, 2**70], 2)
fmab.Problem([Fraction(1, 2)], 2)
fmab.Problem(np.array([1, 0], 'm8[s]'), 2)
fmab.Problem(np.array(['2020-01-01'], 'M8[D]'), 2)
fmab.Problem(np.array([(0.5,)], [('a', float)]), 2)
fmab.Problem([True, False], 2)
fmab.Problem(np.ma.masked_array([0.5, 0.2], mask=[False, True]), 2)
fmab.Problem(range(10**12), 2)
fmab.Problem(range(10**30), 2)
fmab.Problem([[0.5], [0.4]], np.array([2, 2]))
fmab.Problem([[0.5], [0.4]], 10**400)

# a law of rewards that does not fit, or is none
fmab.Gaussian(0)
fmab.Gaussian(nan)
fmab.Gaussian('1')
fmab.Ratings([1])
fmab.Ratings(5)
fmab.Ratings('12')
fmab.Ratings([1, 1])
fmab.Ratings([2, 1])
fmab.Ratings([0, inf])
fmab.Ratings([0, 10**400])
fmab.Ratings([0, '1'])
fmab.Ratings([0, 5e-324, 1])
fmab.Ratings([0, 1e-41, 1])
fmab.Ratings([-1e15, 1e-26, 1e15])
fmab.Ratings(range(10**12))
fmab.Problem([0.5], 2, 'normal')
fmab.Problem([0.5], 2, fmab.Gaussian)
fmab.Problem.uniform(2, 3, fmab.Ratings([1, 2]))
fmab.Problem([0.5, inf], 2, fmab.Gaussian(1))
fmab.Problem.ratings([1, 2], [[0.5, 0.4]], 3)
fmab.Problem.ratings([1, 2], [[[0.5, 0.5], [0.5, 0.5000001]]])
fmab.Problem.ratings([1, 2], [[1.5, -0.5]], 3)
fmab.Problem.ratings([1, 2], [[nan, 0.5]], 3)
fmab.Problem.ratings([1, 2, 3], [[0.5, 0.5]], 3)
fmab.Problem.ratings([1, 2], [[0.5, 0.5]])
fmab.Problem.ratings([1, 2], [0.5, 0.5], 3)
fmab.Problem.ratings([2, 1], [[0.5, 0.5]], 3)

# a table of means that is read in part, or a cell that is made up
fmab.Problem.from_file(file('means.csv', b''))
fmab.Problem.from_file(file('means.csv', b'a,b\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3,1e-400\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3,-1e-400\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3,1E-9999\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3,0.001e-323\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n"0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,"0."2\n'))
fmab.Problem.from_file(file('means.csv', b'a,b\n0.1,0.2\n0.3,oops\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2\n0.3,\n'))
fmab.Problem.from_file(file('means.csv', b'0.1;0.2\n0.3;0.4\n'))
fmab.Problem.from_file(file('means.csv', b'a;b\n0,3;0,4\n'))
fmab.Problem.from_file(file('means.csv', b'a,b\n0.3\t0.4\n'))
fmab.Problem.from_file(file('means.csv', b'nan,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'-inf,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1_5,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'\xd9\xa0.\xd9\xa1,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'\xef\xbc\x90.5,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'1e400,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'1+0j,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\nnan,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n-inf,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n0.1_5,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n\xd9\xa0.\xd9\xa1,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n\xef\xbc\x90.5,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n1e400,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.1\n1+0j,0.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'nan,nan\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'0.1 0.2\n0.3 0.4\n'))
fmab.Problem.from_file(file('means.csv', b'"V1" "V2"\n"1" 0.1 0.2\n'))
fmab.Problem.from_file(file('means.csv', b',arm 1,arm 2\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'Unnamed: 0,arm 1,arm 2\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'"",arm 1,arm 2\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b',arm 1\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\n1,0.1,0.2\n2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\n1,0.1,0.2\n0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\n7,0.1,0.2\n7,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'Index,a,b\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'Index,a,b\n1,0.1,0.2\n2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'Index,a,b\n1,0.1,0.2\n0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'Index,a,b\n7,0.1,0.2\n7,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\n0.0,0.1,0.2\n1.0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'id,a,b\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'id,a,b\n1,0.1,0.2\n2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'id,a,b\n1,0.1,0.2\n0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'id,a,b\n7,0.1,0.2\n7,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'1,0.1,0.2\n2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'1,0.1,0.2\n0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'7,0.1,0.2\n9,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\n0,0.1,0.2\n1,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\n1,0.1,0.2\n2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\n1,0.1,0.2\n0,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\n7,0.1,0.2\n9,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\n1,0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'ann,0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'agent,a,b\nann,0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'player,a,b\nann,0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'index,0,1\nann,0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'0,1\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'1,2\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'1,0\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'"0","1"\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'2019,2020\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'0\n0.1\n'))
fmab.Problem.from_file(file('means.csv', b'\n0,1\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'"a","b"\n"1",0.1,0.2\n"2",0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'# means\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'a,b,c\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'a,b\n0.1,0.2\n0.1,0.2,0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'a,b,a\n0,1,0\n'))
fmab.Problem.from_file(file('means.csv', b'agent,arm,value,time\n0,0,0,0\n'))
fmab.Problem.from_file(file('means.csv', b'user,item,rating\n0,0,0\n'))
fmab.Problem.from_file(file('means.csv', b'User_ID,item id,stars\n0,0,0\n'))
fmab.Problem.from_file(file('means.csv', b'agent,arm,reward\n0,0,0\n'))
fmab.Problem.from_file(file('means.csv', b'value,arm\n0,0\n'))
fmab.Problem.from_file(file('means.csv', b'a,b\n0.1,0.2\n0.3,1.5\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,-0.2\n'))
fmab.Problem.from_file(file('means.csv', b'\xff\xfe0\x00.\x001\x00,\x000\x00.\x002\x00\n\x00'))
fmab.Problem.from_file(file('means.csv', b'\xe9,b\n0.1,0.2\n'))
fmab.Problem.from_file(file('means.csv', b'agent,arm,value\n1,1,3\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2x\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,0.2,\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,O.2\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', b'0.1,\n0.3,0.4\n'))
fmab.Problem.from_file(file('means.csv', '0.1,0.2\n0.3,0.4\n'), 3)
fmab.Problem.from_file('none.csv')
fmab.Problem.from_file('means.txt')
fmab.Problem.from_file('means')

fmab.Problem.from_file(file('means.csv', b'0.1,' + 200_000 * b'9' + b'\n'))

# a graph that passes for another, or has not one node for each agent
fmab.ddp_mab(1.0, graph='rng').exchange(5)
fmab.ddp_mab(1.0, graph='Star').exchange(5)
fmab.ddp_mab(1.0, graph='regular').exchange(5)
fmab.ddp_mab(1.0, graph='regular-٤').exchange(5)
fmab.ddp_mab(1.0, graph='preferental').exchange(5)
fmab.ddp_mab(1.0, graph='random-').exchange(5)
fmab.ddp_mab(1.0, graph='').exchange(5)
fmab.ddp_mab(1.0, graph='graph.gml').exchange(5)
fmab.ddp_mab(1.0, graph=10**6 * 'x').exchange(5)
fmab.ddp_mab(1.0, graph=None).exchange(5)
fmab.ddp_mab(1.0, graph=7).exchange(5)
fmab.ddp_mab(1.0, graph=b'ring').exchange(5)
fmab.ddp_mab(1.0, graph='regular-3').exchange(5)
fmab.ddp_mab(1.0, graph='regular-6').exchange(5)
fmab.ddp_mab(1.0, graph='regular-1').exchange(4)
fmab.ddp_mab(1.0, graph='regular-4').exchange(1)
fmab.ddp_mab(1.0, graph='random-0').exchange(5)
fmab.ddp_mab(1.0, graph='random-1.5').exchange(5)
fmab.ddp_mab(1.0, graph='random-1e-3').exchange(50)
fmab.ddp_mab(1.0, graph='preferential-0').exchange(5)
fmab.ddp_mab(1.0, graph='preferential-5').exchange(5)
fmab.ddp_mab(1.0, graph='complete').exchange(5000)
fmab.ddp_mab(1.0, graph='random-0.5').exchange(5000)
fmab.ddp_mab(1.0, graph=nx.Graph()).exchange(5)
fmab.ddp_mab(1.0, graph=nx.path_graph(5, nx.DiGraph)).exchange(5)
fmab.ddp_mab(1.0, graph=nx.MultiDiGraph([(0, 1), (1, 0)])).exchange(2)
fmab.ddp_mab(1.0, graph=nx.Graph([(0, 1), (1, 2), (0, 0), (2, 2)])).exchange(3)
fmab.ddp_mab(1.0, graph=nx.Graph([(0, 1), (2, 3), (4, 5)])).exchange(6)
fmab.ddp_mab(1.0, graph=nx.path_graph(3)).exchange(5)
fmab.ddp_mab(1.0, graph='rng').exchange(3)
fmab.ddp_mab(1.0, graph='').exchange(3)
fmab.ddp_mab(1.0, graph=None).exchange(3)
fmab.ddp_mab(1.0, graph=nx.Graph([(0, 1), (1, 1), (1, 2)])).exchange(3)
fmab.ddp_mab(1.0, graph=nx.path_graph(4)).exchange(3)

fmab.ddp_mab(1.0, file('a.csv', b'0,"' + 200_000 * b'1' + b'"\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', '<?xml version="1.0" encoding="utf-16"?>\n<!DOCTYPE graphml
    [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n<graphml/>'.encode('utf-16'))).exchange(2)

# a number of agents that is none
fmab.ddp_mab(1.0, 'ring').exchange(0)
fmab.ddp_mab(1.0, 'ring').exchange(-3)
fmab.ddp_mab(1.0, 'ring').exchange(2.5)
fmab.ddp_mab(1.0, 'ring').exchange(10**9)
fmab.ddp_mab(1.0, 'ring').exchange(nan)

# sizes of components that do not sum to the agents, or parts that are none
fmab.hdp_mab(1.0, components='20x5:star').exchange(50)
fmab.hdp_mab(1.0, components='63,24,10,6,7').exchange(100)
fmab.hdp_mab(1.0, components='1x999999999').exchange(100)
fmab.hdp_mab(1.0, components=[3, (4, 'ring')]).exchange(8)
fmab.hdp_mab(1.0, components='5+').exchange(5)
fmab.hdp_mab(1.0, components='').exchange(5)
fmab.hdp_mab(1.0, components='star').exchange(5)
fmab.hdp_mab(1.0, components='5:').exchange(5)
fmab.hdp_mab(1.0, components=':star').exchange(5)
fmab.hdp_mab(1.0, components='3,,2').exchange(5)
fmab.hdp_mab(1.0, components='0x5').exchange(5)
fmab.hdp_mab(1.0, components='5x0').exchange(5)
fmab.hdp_mab(1.0, components='-5').exchange(5)
fmab.hdp_mab(1.0, components='2.5x2').exchange(5)
fmab.hdp_mab(1.0, components='٥').exchange(5)
fmab.hdp_mab(1.0, components='5*1').exchange(5)
fmab.hdp_mab(1.0, components='2+3:rng').exchange(5)
fmab.hdp_mab(1.0, components='2+3x1:regular-4').exchange(5)
fmab.hdp_mab(1.0, components=[]).exchange(5)
fmab.hdp_mab(1.0, components=5).exchange(5)
fmab.hdp_mab(1.0, components=b'5').exchange(5)
fmab.hdp_mab(1.0, components=nx.path_graph(5)).exchange(5)
fmab.hdp_mab(1.0, components=[2, 'ring']).exchange(5)
fmab.hdp_mab(1.0, components=[2.0, 3]).exchange(5)
fmab.hdp_mab(1.0, components=[True, 4]).exchange(5)
fmab.hdp_mab(1.0, components=[(2, 'ring', 3)]).exchange(5)
fmab.hdp_mab(1.0, components=[5, 0]).exchange(5)
fmab.hdp_mab(1.0, components=[2, (3, None)]).exchange(5)
fmab.hdp_mab(1.0, components=[2, nx.empty_graph(3)]).exchange(5)
fmab.hdp_mab(1.0, components=[nx.Graph([(0, 2)]), nx.Graph([(1, 4), (3, 4)])]).exchange(5)
fmab.hdp_mab(1.0, components=[nx.Graph([(i, i + 2)]) for i in np.arange(2)]).exchange(4)
fmab.hdp_mab(1.0, components='5').exchange(0)
fmab.hdp_mab(1.0, components='2x2:ring').exchange(6)
fmab.hdp_mab(1.0, components='3x2:rng').exchange(6)
fmab.hdp_mab(1.0, components=[]).exchange(6)
fmab.hdp_mab(1.0, components=[2.5, 3.5]).exchange(6)

# a file of a graph that is read in part, as another, or with a traceback
fmab.ddp_mab(1.0, file('a.txt', b'0 1\n2\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1 2 3\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.edgelist', b"0 1 {'weight'\n")).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0 1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1\n,2\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1,x,y\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1\nsource,target,kind\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'source,target,weight\n0,1,x\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv',
    b'Source,Target,Type,Id,Label,Weight\n0,1,Undirected,0,,1.0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'Id,Source,Target\n0,0,1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b',source,target\n0,0,1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'source;target\n0;1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'Source\tTarget\tType\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'%%MatrixMarket matrix coordinate\n2 2 1\n2 1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'node1 node2\n0 1\n1 2\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'V1,V2\n0,1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1 0\n1 0 1\n0 1 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 0.5 0\n0.5 0 2\n0 2 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1 0 0\n1 0 1 0\n0 1 0 1\n0 0 1 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'a b c d\n0 1 1 0\n0 1 1 0\n0 1 1 0\n0 1 1 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'a b c\na 0 1 0\nb 1 0 1\nc 0 1 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1 2 3\n0 1 1 0\n0 1 1 0\n0 1 1 0\n0 1 1 0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1,0\n1,0,1\n0,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,0.5,0\n0.5,0,2\n0,2,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1,0,0\n1,0,1,0\n0,1,0,1\n0,0,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'a,b,c,d\n0,1,1,0\n0,1,1,0\n0,1,1,0\n0,1,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b'0,1,2,3\n0,1,1,0\n0,1,1,0\n0,1,1,0\n0,1,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.csv', b',a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1\n\xff\xfe')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'# nothing\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 0\n0 1\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1\n2 3\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.txt', b'0 1\n1 2\n')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', b'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY a
    "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n<graphml><graph edgedefault="undirected"><node
    id="&b;"/></graph></graphml>')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', b'')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', b'\x00\x01garbage')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', b'<graphml><graph>')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', b'<html/>')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', '<graphml
    xmlns="http://graphml.graphdrawing.org/xmlns"><graph><node id="0"><data
    key="k">1</data></node></graph></graphml>')).exchange(2)
fmab.ddp_mab(1.0, file('a.graphml', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph
    edgedefault="directed"><node id="0"/></graph></graphml>')).exchange(2)
fmab.ddp_mab(1.0, 'none.txt').exchange(5)
fmab.ddp_mab(1.0, 'a\0.csv').exchange(5)
fmab.simulate(fmab.ddp_mab(1.0, file('net.txt', '0 1\n1 2\n')), fmab.Problem.uniform(2, 2), 9, 2)

# a table of an exchange that is none
exchanges.alone(0)
exchanges.server(2.5)
exchanges.server(True)
exchanges.server('5')
exchanges.server(10**8)
exchanges.server(5, 0)
exchanges.server(5, -0.1)
exchanges.server(5, 1.01)
exchanges.server(5, nan)
exchanges.server(5, '0.5')
exchanges.flooding('ring')
exchanges.flooding(nx.empty_graph(2))
exchanges.flooding(nx.path_graph(5001))
exchanges.gossip(nx.path_graph(3), 0)
exchanges.gossip(nx.path_graph(1001))
exchanges.sinks([nx.path_graph(2), nx.path_graph(2, nx.DiGraph)])
exchanges.sinks([nx.path_graph(2), 5])
exchanges.sinks([])
exchanges.sinks('20x5')
exchanges.sinks(nx.path_graph(3))
exchanges.sinks([nx.path_graph(3)], 'component')

# a table of ratings that is read as another, or a row skipped in silence
fmab.ratings.from_table(file('t.csv', 'agent;arm;value\na;x;1\na;y;2\nb;x;2\nb;y;1\n'), 'agent',
    'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent\tarm\tvalue\na\tx\t1\na\ty\t2\nb\tx\t2\nb\ty\t1\n'),
    'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', '1::2::3::4\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', ',agent,arm,value\n0,a,x,1\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\n0,a,x,1\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'values')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', None)
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\nb,y,good\n'),
    'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\nb,y,"3,5"\n'),
    'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,1\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,nan\na,y,\n'), 'agent', 'arm',
    'value', levels=[1, 2])
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\nb,x,2\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'value', least_per_agent=3)
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\nc,x,1\n'),
    'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1,5,7\n'), 'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'genres', 'value')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'value', items='x.csv')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'value', fill='mean')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'value', toward='agent')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\na,x,1\na,y,2\nb,x,2\nb,y,1\n'), 'agent',
    'arm', 'value', split='')
fmab.ratings.from_table(file('t.csv', 'agent,arm,value\n\na,"x\ny",1\n"b",y,bad\nc,x,bad\n'),
    'agent', 'arm', 'value')
fmab.ratings.from_table(file('t.csv',
    'agent,arm,value\na,x,1\na,y,2\nb,x,1\nb,y,2\nc,x,2\nc,y,1\n'), 'agent', 'arm', 'value',
    groups=3)
fmab.ratings.from_table(file('t.csv',
    'agent,arm,value\na,x,1\na,y,2\nb,x,1\nb,y,2\nc,x,2\nc,y,1\n'), 'agent', 'arm', 'value',
    groups=4)

# a study with another field's name, or a cell that is dropped in silence
fmab.sweep('cdp', **STUDY | dict(epsilom=1))
fmab.sweep('cdp', **STUDY | dict(agent=1))
fmab.sweep('cdp', **STUDY | dict(partcipation=[1]))
fmab.sweep('cdp', **STUDY | dict(problem_agents=1))
fmab.sweep('cdp', PROBLEM, **STUDY)
fmab.sweep('ddp', **STUDY | dict(participation=1))
fmab.sweep('cdp', **STUDY | dict(graph='ring'))
fmab.sweep('cpd', **STUDY)
fmab.sweep(['cdp', 'none'], **STUDY)
fmab.sweep(type('C', (fmab.ucb1,), {'name': 'cdp'}), **STUDY)
fmab.sweep(fmab.cdp_mab(1), **STUDY)
fmab.sweep(max, **STUDY)
fmab.sweep('cdp', 5, **STUDY)
fmab.sweep('cdp', horizon=50, seeds=2, agents=2, arms=2)
fmab.sweep('cdp', **STUDY | dict(epsilon=[]))
fmab.sweep('cdp', **STUDY | dict(epsilon={}))
fmab.sweep([], **STUDY)
fmab.sweep('cdp', **STUDY | dict(agents=range(0)))
fmab.sweep('cdp', **STUDY | dict(arms=np.array([])))
fmab.sweep('cdp', [], **STUDY)
fmab.sweep('cdp', **STUDY | dict(epsilon=[1, 0.5, 1.0]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[None, inf]))
fmab.sweep('cdp', **STUDY | dict(rounds=[None, 2, None]))
fmab.sweep(['cdp', 'cdp'], **STUDY)
fmab.sweep('ddp', **STUDY | dict(graph=['ring', 'ring']))
fmab.sweep('ddp', **STUDY | dict(graph=[nx.karate_club_graph(), nx.karate_club_graph()],
    agents=34))
fmab.sweep('cdp', **STUDY | dict(epsilon={1: 1, '1': 2}))
fmab.sweep('cdp', **STUDY | dict(epsilon=range(1, 100_002)))
fmab.sweep('cdp', **STUDY | dict(agents=range(10**15)))
fmab.sweep('cdp', **STUDY | dict(epsilon=range(1, 1001), horizon=range(1, 102)))
fmab.sweep('cdp', **STUDY | dict(epsilon=[1, 0]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[nan]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[True]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[1j]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[[[0.1]]]))
fmab.sweep('cdp', **STUDY | dict(epsilon=[object]))
fmab.sweep('cdp', **STUDY | dict(epsilon=np.ones((1, 1))))
fmab.sweep('cdp', **STUDY | dict(epsilon=[1], epsilon_message=1))
fmab.sweep('cdp', **STUDY | dict(instance_gap=0))
fmab.sweep('cdp', **STUDY | dict(schedule_gap=0))
fmab.sweep('cdp', **STUDY | dict(gap=0))
fmab.sweep('cdp', **STUDY | dict(fixed_instance=-1))
fmab.sweep('hdp', **STUDY | dict(components=[[()]]))
fmab.sweep('hdp', **STUDY | dict(components=[]))
fmab.sweep('hdp', **STUDY | dict(components=['3']))
fmab.sweep('cdp', **STUDY | dict(horizon=[10, 10**16]))
fmab.sweep('cdp', **STUDY | dict(horizon=None))
fmab.sweep('cdp', **STUDY | dict(seeds=0))
fmab.sweep('cdp', **STUDY | dict(seeds=[1, 1]))
fmab.sweep('cdp', **STUDY | dict(seeds=fmab.until_precise(0.1)))
fmab.sweep('cdp', **STUDY | dict(seeds=[1, 2], keep='summary'))
fmab.sweep('cdp', **STUDY | dict(times=0))
fmab.sweep('cdp', **STUDY | dict(times=[5, 4]))
fmab.sweep('cdp', **STUDY | dict(times=None))
fmab.sweep('cdp', **STUDY | dict(spacing='even'))
fmab.sweep('cdp', **STUDY | dict(root_seed=0.0))
fmab.sweep('cdp', **STUDY | dict(sum_agents=1))
fmab.sweep('cdp', **STUDY | dict(keep='all'))
fmab.sweep('cdp', **STUDY | dict(until=fmab.until_precise(0.1)))
fmab.sweep('cdp', **STUDY | dict(until=fmab.until_precise(0.1), keep='summary', seeds=1))
fmab.sweep('cdp', **STUDY | dict(until=fmab.until_precise(0.1, max_seeds=3), keep='summary',
    seeds=4))
fmab.until_precise(0)
fmab.until_precise(1)
fmab.until_precise(0.1, level=1)
fmab.until_precise(0.1, max_seeds=1)
fmab.sweep('cdp', len, **STUDY)
fmab.sweep('cdp', np.array([0.5, 0.4]), **STUDY)
fmab.sweep('cdp', {'a': None}, **STUDY)

# a silent NaN band, or a level in per cent
fmab.confidence_band(VALUES, level=95)
fmab.confidence_band(VALUES, level=nan)
fmab.confidence_band(VALUES, kind='bayes')
fmab.confidence_band(VALUES[:1])
fmab.confidence_band(VALUES * nan)
fmab.confidence_band(VALUES.mean('seed'))
fmab.confidence_band(VALUES.astype(str))
fmab.confidence_band(VALUES, 0.95, 'joint')
fmab.confidence_band(VALUES, resamples=10)
fmab.confidence_band(VALUES, seed=-1)

# a coalition of all agents
fmab.privacy_ledger(CDP, 5, colluding=-1)
fmab.privacy_ledger(CDP, 5, colluding=5)
fmab.privacy_ledger(CDP, 5, colluding=2.5)
fmab.privacy_ledger(CDP, 5, colluding=True)

# an algorithm that is none, and an AttributeError of it
fmab.simulate(5, PROBLEM, 100, 2)
fmab.simulate('cdp_maab', PROBLEM, 100, 2)
fmab.simulate('ucb1', PROBLEM, 100, 2)
fmab.simulate(fmab.Algorithm, PROBLEM, 100, 2)
fmab.simulate(fmab.ucb1, PROBLEM, 100, 2)
fmab.simulate(fmab.ucb1(), 'x', 100, 2)
fmab.simulate(fmab.ucb1(), fmab.Problem, 100, 2)

# an audit of nothing
fmab.audit(fmab.single_mab(1.0), 2, view='sums')
fmab.audit(CDP, 2, view='message')
fmab.audit(CDP, 2, delta=1e-13)

# a result under a name that no reader takes
fmab.save(xr.Dataset(), 'x.csv')
fmab.load('x.npz')
fmab.load('nowhere.nc')
fmab.save(xr.Dataset(), 'a\0b.nc')
fmab.save(xr.Dataset(), 253 * 'a' + '.nc')
fmab.save_figure(None, 'a.jpeg')
fmab.plot_runs({})
"""

# Command lines.
COMMANDS = r"""
# a misspelt command or algorithm without a hint
fmab
fmab run
fmab sweep
fmab rum cdp
fmab run cpd
fmab sweep cpd
fmab run doubling
fmab --agents 3
fmab plot
fmab show
fmab compare
fmab compare a b c
fmab report

# an option of another command that is ignored, or given twice
fmab sweep x.toml --epsilon 1
fmab sweep x.toml --wroker 1/2
fmab sweep cdp --store x
fmab sweep cdp --graph ring
fmab run cdp --hroizon 9
fmab run cdp --agnets 3
fmab run cdp --graph ring
fmab run ddp -n 3
fmab show -x.nc
fmab run cdp --out -out
fmab doctor --seed 3
fmab run cdp --seeds
fmab run cdp --agents --arms 3
fmab run cdp --seeds 3 4
fmab run cdp --epsilon
fmab run cdp --no-figure=yes
fmab run cdp 5 --agents 3
fmab run cdp --plugin

# a number that is read as another, or not refused as it was typed
fmab run cdp --epsilon 0,5
fmab run cdp --seeds 1,000
fmab run cdp --epsilon 0
fmab run cdp --epsilon 1e400
fmab run cdp --epsilon 1e-99999999999999999999
fmab run cdp --epsilon 1e308
fmab run cdp --epsilon 1 -1
fmab run ddp --epsilon nan
fmab run hdp --epsilon x
fmab run cdp --epsilon ١
fmab run cdp --epsilon ınf
fmab run cdp --horizon 1_0
fmab run cdp --seeds ١٢
fmab run cdp --epsilon 1 1.0
fmab sweep cdp --epsilon 1 1.0
fmab run cdp --epsilon 1 --epsilon-message 5
fmab sweep cdp --epsilon 1 --epsilon-message 2
fmab run cdp --participation=0
fmab run cdp --rounds 2.5
fmab run cdp --horizon 0
fmab run cdp --horizon none
fmab run cdp --horizon 1__0
fmab run cdp --horizon 1e13
fmab run cdp --agents 0x10
fmab sweep hdp --agents 0
fmab run cdp --arms 1e400
fmab run cdp --instance-gap 1
fmab sweep cdp --instance-gap 7
fmab run cdp --fixed-instance -1
fmab run cdp --seeds 1
fmab sweep cdp --seeds 0
fmab run cdp --root-seed 4294967296
fmab run cdp --root-seed 12345678901234567890
fmab run cdp --times 5 2
fmab run cdp --times 5 1e6
fmab run cdp --level 95
fmab run cdp --band bayes
fmab run cdp --server-price -1
fmab run cdp --peer-price inf
fmab run ucb1 --alpha -1
fmab doctor --arms 0
fmab doctor --horizon x

# a run of what an algorithm is not for
fmab run kl_se --split true --spread 0.5
fmab run kl_se --split true --agents 2e3
fmab run demab --spread 0.5
fmab run kl_se --split true --outputs fairness
fmab run cdp --rewards gaussian:0.1 --epsilon 0.5
fmab run ddp --graph rng
fmab run hdp --components 20x4:star
fmab sweep hdp --components 3 --agents 5
fmab sweep hdp --components 2:rong --agents 2
fmab run hdp --weights sinks
fmab run ucb1 --rewards gaussian
fmab run ucb1 --rewards gaussian:x
fmab run ucb1 --rewards gaussian:0
fmab run ucb1 --rewards gaussian:1e400
fmab run ucb1 --rewards bernoulli:1
fmab bounds cdp --scale 0.5 --instance-gap 0.5
fmab bounds single --epsilon none --rewards gaussian:0.1

# a file that cannot be read or written, found after the work
fmab run cdp --means nowhere.csv
fmab run cdp --means nowhere.csv --arms 3
fmab sweep cdp --means a.csv --arms 3
fmab run mine --plugin no.py
fmab sweep no.toml
fmab show nowhere
fmab compare no.nc
fmab report nothing.nc
fmab run cdp --out nowhere/x
fmab audit cdp --out nowhere/x
fmab run cdp --out=
fmab sweep cdp --out=
fmab sweep cdp --out ' '
fmab sweep cdp --save-study x.txt
fmab show ' '

# options of a sweep that do not go together
fmab sweep cdp --worker 3/2
fmab sweep cdp --worker 0/2
fmab sweep cdp --max-seeds 9
fmab sweep cdp --until 0.1
fmab sweep cdp --until 2 --keep summary
fmab sweep cdp --keep all
fmab sweep cdp --chunk 0
"""

# What is replaced in STUDY, and what stands there instead.
STUDY = """\
algorithm = 'cdp'
horizon = 50
seeds = 2
[parameters]
epsilon = 1
[problem]
agents = 2
arms = 2
"""
UCB1 = "'ucb1'\nhorizon = 50\nseeds = 2\n[parameters]\nalpha = -1"
STUDIES = {
    "a study without what it needs": [
        (STUDY, ""),
        (STUDY, "# nothing\n"),
        ("seeds = 2\n", ""),
        ("epsilon = 1\n", ""),
    ],
    "a value of a study that is read as another": [
        ("horizon = 50", "horizon = -1e3"),
        ("horizon = 50", "horizon = inf"),
        ("horizon = 50", "horizon = 1e13"),
        ("horizon = 50", "horizon = 1979-05-27"),
        ("horizon = 50", "horizon = 1e400"),
        ("seeds = 2", "seeds = 1979-05-27"),
        ("seeds = 2", "seeds = {a = 1, 'b c' = [2]}"),
        ("seeds = 2", "seeds = [1, 2]\nkeep = 'summary'"),
        ("seeds = 2", "seeds = 2\nkeep = true"),
        ("seeds = 2", "seeds = 2\ntimes = {a = 1}"),
        ("seeds = 2", "seeds = 2\ntimes = [1, 'a']"),
        ("seeds = 2", "seeds = 2\ntimes = [1, [2]]"),
        ("epsilon = 1", "epsilon = [07:32:00]"),
        ("epsilon = 1", "epsilon = [1, 'x']"),
        ("epsilon = 1", "epsilon = [[[0.1]]]"),
        ("epsilon = 1", "epsilon = ['none', inf]"),
        ("epsilon = 1", "epsilon = -inf"),
        ("epsilon = 1", "epsilon = [-inf]"),
        ("epsilon = 1", "epsilon = [1, -1_0e4_00]"),
        ("epsilon = 1", "epsilon = {a = 1e-400}"),
        ("epsilon = 1", "epsilon = {a = {b = 1}}"),
        ("epsilon = 1", "epsilon = 1\nrounds = ['x']"),
        ("[problem]", "[problem]\nrewards = 'gaussian:0.1'"),
        ("agents = 2", "agents = 'none'"),
        ("agents = 2", "agents = 2\ninstance_gap = 7"),
        ("'cdp'", "5"),
        ("'cdp'", "'cpd'"),
        ("'cdp'\nhorizon = 50\nseeds = 2\n[parameters]\nepsilon = 1", UCB1),
    ],
    "a table or a list where none belongs": [
        ("[problem]", "[[problem]]"),
        ("seeds = 2", "seeds = 2\nuntil = 5"),
        (STUDY, f"keep = 'summary'\n{STUDY}[until]\nlevel = 0.9\n"),
    ],
    "a key that is ignored, or a remedy that misleads": [
        ("seeds = 2", "seeds = 2\nseed = 2"),
        ("seeds = 2", "seeds = 2\nmeans = 'm.csv'"),
        ("seeds = 2", "seeds = 2\nepsilon = 1"),
        ("seeds = 2", "seeds = 2\nschedule_gap = 1"),
        ("seeds = 2", "seeds = 2\n'' = 3"),
        ("seeds = 2", 'seeds = 2\n"a\\u001b[2J" = 3'),
        ("epsilon = 1", "epsilon = 1\nparticpation = 1"),
        ("epsilon = 1", "epsilon = 1\ngraph = 'ring'"),
        ("epsilon = 1", "epsilon = 1\nagents = 3"),
        ("arms = 2", "arms = 2\nagent = 1"),
        ("arms = 2", "arms = 2\nepsilon = 3"),
        ("arms = 2", "arms = 2\nseeds = 3"),
        ("arms = 2", "arms = 2\n[untill]\nrelative = 1"),
        ("arms = 2", "arms = 2\n[until]\nzzz = 1"),
    ],
    "means that are replaced in silence, or read too late": [
        ("agents = 2", "means = 'm.csv'"),
        ("agents = 2\narms = 2", "means = 'nowhere.csv'"),
        ("agents = 2\narms = 2", "means = 5"),
        ("agents = 2\narms = 2", "means = ['a.csv', 'a.csv']"),
        ("agents = 2\narms = 2", "means = []"),
    ],
    "a text that is hidden, or a file that is no study": [
        ("seeds = 2", 'seeds = 2\nkeep = "\\u0000"'),
        ("epsilon = 1", 'epsilon = 1\ngraph = ["a\\u0000.csv"]'),
        ("seeds = 2", 'seeds = 2\n"\\u0000" = 1'),
        ("epsilon = 1", f"epsilon = {9 * '['}1{9 * ']'}"),
    ],
}


# --- what becomes of them ---


class Case(NamedTuple):
    """An input that must be refused.

    Attributes:
        door: What it is: "python", "command" or "study".
        input: As it is written.
        mistake: What goes wrong where it is let through.
    """

    door: str
    input: str
    mistake: str


def cases() -> list[Case]:
    """Returns all cases, in the order of the golden file."""
    found = [Case("python", *each) for each in _listed(PYTHON)]
    found += [Case("command", *each) for each in _listed(COMMANDS)]
    for mistake, changes in STUDIES.items():
        for old, new in changes:
            assert STUDY.count(old) == 1, old
            found.append(Case("study", STUDY.replace(old, new), mistake))
    assert len({each[:2] for each in found}) == len(found)
    return sorted(found)


def line_of(case: Case) -> str:
    """Returns the line in which a case is refused, in an empty folder.

    Names of algorithms are left out, so that a new one is no change of wording.

    Raises:
        AssertionError: If it is not refused in one line, or writes a file.
        AttributeError: If a program would be compiled.
    """
    from fmab_jax.algorithms.base import collect_algorithms
    from fmab_jax.run import compilation, outputs

    made: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        mock.patch.object(compilation, "compile_program", mock.Mock(side_effect=AssertionError)),
        mock.patch.object(outputs, "plugin_modules", list),
    ):
        if case.door == "python":
            line = refused(eval, case.input, _names(made))
        else:
            words = shlex.split(case.input)[1:]
            if case.door == "study":
                words = ["sweep", _file(made, "study.toml", case.input)]
            line = _told(words)
        assert {path.name for path in Path().iterdir()} == made
    return line.replace(", ".join(sorted(collect_algorithms())), "<algorithms>")


def golden() -> dict[tuple[str, str], str]:
    """Returns the line of the golden file by door and input."""
    rows = json.loads(GOLDEN.read_text("utf-8"))
    return {(door, text): line for door, text, line in rows}


def write(lines: dict[tuple[str, str], str]) -> str:
    """Returns a golden file: a row a line."""
    rows = [json.dumps([*key, line]) for key, line in sorted(lines.items())]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _listed(text: str) -> Iterator[tuple[str, str]]:
    """Yields each input with the heading above it."""
    mistake = ""
    for line in text.replace("\n    ", " ").splitlines():
        if line.startswith("# "):
            mistake = line[2:]
        elif line:
            yield line, mistake


def _names(made: set[str]) -> dict[str, Any]:
    """Returns what an expression may name; `file` writes one and returns its name."""
    from decimal import Decimal
    from fractions import Fraction

    import networkx as nx
    import numpy as np
    import xarray as xr

    import fmab_jax as fmab
    from fmab_jax.core import exchanges

    return {
        **{"fmab": fmab, "exchanges": exchanges, "np": np, "nx": nx, "xr": xr},
        **{"Decimal": Decimal, "Fraction": Fraction, "inf": float("inf"), "nan": float("nan")},
        "__name__": __name__,  # of the module of a class that an expression makes
        "CDP": fmab.cdp_mab(1.0),
        "PROBLEM": fmab.Problem([0.9, 0.5, 0.5, 0.1], agents=3),
        "STUDY": {"horizon": 50, "seeds": 2, "times": 5, "agents": 2, "arms": 2, "epsilon": 1},
        "VALUES": xr.DataArray(np.zeros((5, 3)), dims=("seed", "time")),
        "file": lambda name, content: _file(made, name, content),
    }


def _file(made: set[str], name: str, content: str | bytes) -> str:
    """Writes a file and returns its name."""
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    made.add(name)
    return name


def _told(words: list[str]) -> str:
    """Returns the one line that a command ends in, with status 2 and nothing on its output."""
    from fmab_jax.cli.main import main

    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        status = main(words)
    told = err.getvalue()
    assert (status, out.getvalue(), told.count("\n")) == (2, "", 1), told
    assert told.startswith("fmab: ") and told.endswith("\n")
    return told[6:-1]


def main() -> None:
    """Writes the golden file, or says which lines differ from it."""
    lines = {}
    for case in cases():
        try:
            lines[case[:2]] = line_of(case)
        except (Exception, pytest.fail.Exception) as error:  # what is no refusal
            print(f"{case.input}\n! {type(error).__name__}: {error}\n")
    old = golden() if GOLDEN.exists() else {}
    for key in sorted({*lines, *old}):
        if lines.get(key) != old.get(key):
            print(*key, f"- {old.get(key)}", f"+ {lines.get(key)}", "", sep="\n")
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(write(lines), "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, os.fspath(Path(__file__).parents[1]))
    main()
