"""In a notebook everything shows itself, progress is lines, and Ctrl-C ends cleanly."""

import base64
import struct
import time

import pytest

client = pytest.importorskip("jupyter_client.manager", reason="needs jupyter_client and ipykernel")
pytest.importorskip("ipykernel", reason="needs ipykernel")

BEGIN = """
import fmab_jax as fmab
problem = fmab.Problem.uniform(agents=5, arms=10)
data = fmab.simulate(fmab.cdp_mab(1), problem, 10**4, seeds=40, times=5, batch=20)
"""
STUDY = """
def study(**more):
    return fmab.sweep("cdp", problem, epsilon=[0.5, 1], horizon=10**4, times=5, chunk=40, **more)
swept = study(seeds=40)
"""
LONG = """
study(seeds=10**6, progress=True)
"""


@pytest.fixture(scope="module")
def kernel():
    """A kernel as a notebook starts it."""
    manager, talk = client.start_new_kernel(kernel_name="python3", startup_timeout=120)
    try:
        yield manager, talk
    finally:
        talk.stop_channels()
        manager.shutdown_kernel(now=True)


def ran(talk, code, timeout=300):
    """Runs a cell; returns all messages that it sends."""
    sent = []
    talk.execute_interactive(
        code, timeout=timeout, output_hook=lambda message: sent.append(message), stop_on_error=False
    )
    return sent


def texts(messages, kind):
    """Returns what was displayed, as HTML."""
    found = [each["content"]["data"] for each in messages if each["msg_type"] == kind]
    return [each.get("text/html", "") for each in found]


def streams(messages):
    """Returns all that was written or warned."""
    errors = [str(each["content"]) for each in messages if each["msg_type"] == "error"]
    written = [each["content"]["text"] for each in messages if each["msg_type"] == "stream"]
    return "".join(errors + written)


def test_progress_is_lines_if_asked_for_and_nothing_is_warned(kernel):
    """Would catch a line for each step, or a warning of widgets that are missing."""
    _, talk = kernel
    assert streams(ran(talk, BEGIN)) == streams(ran(talk, STUDY)) == ""
    lines = streams(ran(talk, "_ = study(seeds=40, progress=True)")).splitlines()
    assert lines[0].startswith("2 configurations, 80 trials") and len(lines) <= 3
    assert lines[-1] == "80 of 80 trials, 2 of 2 configurations done"


def test_figures_and_overviews_show_themselves(kernel):
    """Would catch a figure that shows as its name, in another shape than it is, or a bare text."""
    _, talk = kernel
    ran(talk, BEGIN)
    (shown,) = (m for m in ran(talk, "fmab.plot_runs(data)") if m["msg_type"] == "execute_result")
    picture = base64.b64decode(shown["content"]["data"]["image/png"])
    wide, tall = struct.unpack(">II", picture[16:24])
    size = shown["content"]["metadata"]["image/png"]
    assert picture.startswith(b"\x89PNG") and wide == round(3.4 * 300)
    assert size["width"] == round(3.4 * 144)
    assert size["height"] / size["width"] == pytest.approx(tall / wide, rel=0.01)
    (html,) = texts(ran(talk, "fmab.overview(data)"), "execute_result")
    assert "<p>CDP-MAB, ε = 1 (5 per message)" in html and "Clopper-Pearson" in html


def test_an_interrupt_ends_a_sweep_and_leaves_the_kernel_usable(kernel):
    """Would catch an interrupt that is swallowed, that hangs, or after which nothing runs."""
    manager, talk = kernel
    ran(talk, BEGIN + STUDY)
    # A kernel else drops what is asked soon after an error.
    request = talk.execute(LONG, stop_on_error=False)
    began = time.monotonic()
    while True:  # until it computes, which its line tells
        message = talk.get_iopub_msg(timeout=120)
        if message["msg_type"] == "stream" and "trials/s" in message["content"]["text"]:
            break
        assert time.monotonic() - began < 240
    manager.interrupt_kernel()
    while True:
        reply = talk.get_shell_msg(timeout=120)
        if reply["parent_header"]["msg_id"] == request:
            break
    assert (reply["content"]["status"], reply["content"]["ename"]) == ("error", "KeyboardInterrupt")
    (answer,) = (
        m
        for m in ran(talk, "int(study(seeds=40).sizes['seed'])")
        if "data" in m["content"] and m["msg_type"] == "execute_result"
    )
    assert answer["content"]["data"]["text/plain"] == "40"
