"""A report in a headless browser: no console messages, all figures, sortable tables, readable on phones."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import NIGHTLY
from test_reports import BUFFER, DELAY, POLICY, swept

import celltrain as ct

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on PATH to open a report in"),
]


def opened(page, folder, *options):
    """Returns the elements and console messages of a page in a browser."""
    command = [
        BROWSER,
        *(
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder}/browser",
        ),
        # All requests except for files fail, with a console message.
        "--host-resolver-rules=MAP * ~NOTFOUND",
        *("--enable-logging=stderr", "--log-level=0", "--dump-dom", *options, page.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "</html>" in done.stdout, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def framed(page, folder, screen):
    """Renders a page at a width. Returns its width, its figures and the number of tables that scroll sideways.

    For each figure: whether it is the narrow version, its width, and whether it fits.
    """
    measured = folder / "measured.html"
    measure = """
    const drawings = [...document.querySelectorAll("figure .drawn")].filter(one => one.offsetParent !== null).map(one => ({
      narrow: one.className.includes("column"),
      width: Math.round(one.querySelector("svg").getBoundingClientRect().width),
      fits: one.scrollWidth <= one.clientWidth,
    }));
    const boxes = [...document.querySelectorAll(".wide")].filter(one => one.scrollWidth > one.clientWidth).length;
    document.title = JSON.stringify([document.documentElement.scrollWidth, drawings, boxes]);
    """
    measured.write_text(page.read_text().replace("</body>", f"<script>{measure}</script></body>"))
    # Chromium's window is at least 500 pixels wide, but a frame can be narrower.
    frame = folder / f"framed-{screen}.html"
    frame.write_text(
        f"<iframe src='{measured.as_uri()}' style='width:{screen}px;height:900px;border:0' "
        "onload='setTimeout(() => document.title = frames[0].document.title, 0)'></iframe>"
    )
    text, _ = opened(frame, folder, "--window-size=1400,1000", "--allow-file-access-from-files")
    width, drawings, scrolling = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", text)[1]))
    return width, drawings, scrolling


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    # In the nightly job, figures also have a panel for each buffer.
    axes = {"policy": POLICY, "delay": DELAY, **({"buffer": BUFFER} if NIGHTLY else {})}
    store = swept(folder / "store", name="policies & delays", axes=axes)
    # In the nightly job, the report also compares two stores.
    other = swept(folder / "other", axes=axes, seeds={"first": 9, "count": 4}) if NIGHTLY else None
    report = ct.report(store, compare_with=other, measures=["efficiency", "ports.bottleneck.max_queue_cells"])
    page = folder / "report.html"
    page.write_text(report.html(), encoding="utf-8")
    return page, report


@pytest.mark.nightly
def test_a_report_opens_in_a_browser_without_console_messages_and_shows_each_of_its_figures(written, tmp_path):
    page, report = written
    text, console = opened(page, tmp_path)
    assert console == []
    figures = dict(re.findall(r'<figure id="([^"]+)">(.*?)</figure>', text, re.DOTALL))
    drawings = {drawing.name: drawing for drawing in report.drawings()}
    assert list(figures) and set(figures) == set(drawings)
    for name, drawing in drawings.items():
        content = html.unescape(re.sub(r"<[^>]+>", "\n", figures[name]))
        for axes in drawing.figure.axes:
            for label in (axes.get_xlabel(), axes.get_ylabel()):
                for line in label.splitlines():
                    assert line in content, (name, label)


def test_the_browser_test_fails_if_a_page_writes_a_console_message(written, tmp_path):
    page, _ = written
    broken = tmp_path / "broken.html"
    broken.write_text(
        page.read_text() + "<script>console.error('here it is')</script><img src='http://example.org/x.png'>"
    )
    _, console = opened(broken, tmp_path)
    assert any("here it is" in line for line in console)


def test_a_click_on_a_column_heading_of_a_report_sorts_the_table(written, tmp_path):
    page, report = written
    clicked = tmp_path / "clicked.html"
    column = 1 + len(report.data.axes)
    click = f"document.querySelectorAll('#points th button')[{column}].click();"
    clicked.write_text(page.read_text().replace("</body>", f"<script>{click}{click}</script></body>"))
    text, console = opened(clicked, tmp_path)
    assert console == []
    rows = re.findall(r"<tr>(.*?)</tr>", text.split('id="points"')[1].split("<tbody>")[1], re.DOTALL)
    keys = [float(re.findall(r'data-key="([^"]+)"', row)[-len(report.data.measures)]) for row in rows]
    assert len(keys) == len(report.data.points)
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize(
    ("screen", "narrow", "pixels"), [(400, True, 336), pytest.param(1280, False, 691, marks=pytest.mark.nightly)]
)
def test_every_figure_in_a_report_fits_the_screen_and_no_page_scrolls_sideways_on_a_phone(
    written, tmp_path, screen, narrow, pixels
):
    """At 400 pixels the narrow figure is shown, at 1280 the wide one, and neither is shrunk or scrolled."""
    page, _ = written
    width, drawings, scrolling = framed(page, tmp_path, screen)
    assert width <= screen
    assert not narrow or scrolling == 0
    assert {one["narrow"] for one in drawings} == {narrow}
    # Collapsed figures are not laid out.
    assert 0 < len(drawings) <= page.read_text().count("<figure id=")
    for one in drawings:
        assert one["fits"]
        assert one["width"] == 0 or abs(one["width"] - pixels) <= 1
