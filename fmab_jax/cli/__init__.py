"""Private, communication-limited federated bandits.

The algorithms of Li and Song (IEEE JSAC 40(3), 2022, arXiv 2111.01570) and
others, simulated for many seeds. Every command has its own --help; fmab
--version prints the version.

Examples:
  fmab run cdp --epsilon 0.1 0.3 0.5 1 --horizon 1e6
  fmab run ddp --graph ring
  fmab sweep cdp --epsilon 0.1 0.3 1 --participation 0.2 1 --out runs/eps
  fmab show runs/eps
  fmab plot runs/eps --x epsilon --hue participation
  fmab report runs/eps
"""
