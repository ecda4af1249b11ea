"""The sizes of problems whose size is no test's subject: each other one is another program."""

SMALL = {"agents": 4, "arms": 3}
MIDDLE = {"agents": 11, "arms": 20}
LARGE = {"agents": 50, "arms": 100}


def words(size):
    """Returns a size as options of the command line."""
    return " ".join(f"--{name} {value}" for name, value in size.items())
