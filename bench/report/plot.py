#!/usr/bin/env python3
"""Draws modelled benchmark results, and the model against published figures, as SVG and PNG.

  plot.py DIR [--results RESULTS] [--validation ROWS]

RESULTS is the JSON of ./simhca bench --json, ROWS that of ./simhca bench --validate.  Equal input
gives equal files.  A plot for which there is no data is left out, and named.  Exit status 2 if a file
is unusable or nothing could be drawn.
"""

import argparse
import os
import sys

import results

try:
    import matplotlib
except ImportError:
    results.end_with("bench", "--plot needs matplotlib (Debian package python3-matplotlib)")

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the back end)

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10,
    "grid.alpha": 0.4,
    "legend.frameon": False,
    "lines.marker": "o",
    "lines.markersize": 5,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "simhca",  # or identifiers are random
}
QUEUES = {"srq": "shared receive queue", "rq": "a receive queue per queue pair"}


class NoData(Exception):
    """There is nothing to draw."""


def points(benchmarks, family, argument, counter):
    """{queue: [(argument, counter), ...]} in order of the argument; queue is "" if there is none."""
    lines = {}
    for benchmark in benchmarks.values():
        name, arguments = benchmark.family_and_arguments()
        value = arguments.get(argument, "")
        if name != family or counter not in benchmark.counters or not value.isdigit():
            continue
        line = lines.setdefault(arguments.get("queue", ""), [])
        line.append((int(value), benchmark.counters[counter]))
    if not lines:
        raise NoData(f"no benchmark {family} with {argument} and {counter}")
    return {queue: sorted(lines[queue]) for queue in sorted(lines, reverse=True)}


def draw_lines(axes, lines, x_label, y_label):
    """Lines over an axis of powers of two, whose ticks are the measured values."""
    for queue, line in lines.items():
        axes.plot(*zip(*line), label=QUEUES.get(queue, queue))
    ticks = sorted({x for line in lines.values() for x, _ in line})
    if ticks[0] > 0:
        axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if any(lines):
        axes.legend()


def srq_against_rq(benchmarks):
    lines = points(benchmarks, "Model/SrqAgainstRq", "size", "ns/msg")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    draw_lines(axes, lines, "message size (bytes)", "modelled time per message (ns/msg)")
    axes.set_yscale("log")
    axes.set_title("SRQ against receive queues")
    return figure


def qp_scaling(benchmarks):
    lines = points(benchmarks, "Model/QpScaling", "qps", "ns/msg")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    draw_lines(axes, lines, "number of queue pairs", "modelled time per message (ns/msg)")
    axes.set_ylim(bottom=0)
    axes.set_title("Scaling with the number of queue pairs")
    return figure


def watermark(benchmarks):
    naks = points(benchmarks, "Model/Watermark", "limit", "rnr_naks")
    events = points(benchmarks, "Model/Watermark", "limit", "limit_events")
    figure, (upper, lower) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5.5))
    draw_lines(upper, naks, "", "RNR NAKs (rnr_naks)")
    draw_lines(lower, events, "watermark (receives)", "limit events (limit_events)")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
    upper.set_title("RNR NAKs and limit events against the watermark")
    return figure


def read_validation(path):
    """Rows (scenario, unit, model / published, verdict) of those that have both figures."""
    document = results.read_json(path)
    rows = document.get("rows") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise results.UnusableFile(f"'{path}' has no list of rows as ./simhca bench --validate writes")
    drawn = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("scenario"), str):
            raise results.UnusableFile(f"'{path}': a row without a scenario")
        published, model = row.get("published"), row.get("model")
        if isinstance(published, float) and isinstance(model, float) and published > 0:
            drawn.append({**row, "ratio": model / published})
    return drawn


def model_against_published(rows):
    if not rows:
        raise NoData("no row with a published and a modelled figure")
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.28 * len(rows)))
    for verdict, colour in (("ok", "tab:green"), ("FAILED", "tab:red")):
        chosen = [
            (place, row["ratio"])
            for place, row in enumerate(rows)
            if (row.get("verdict") == "ok") == (verdict == "ok")
        ]
        if chosen:
            places, ratios = zip(*chosen)
            axes.scatter(ratios, places, color=colour, label=verdict, zorder=3)
    for place, row in enumerate(rows):
        band = tolerance_band(row)
        if band:
            axes.barh(place, band[1] - band[0], left=band[0], height=0.6, color="lightgrey", zorder=1)
    axes.axvline(1, color="black", linewidth=1, marker="")
    labels = [
        f"{row['scenario']} (" + f"{row['published']:.6g} {row.get('unit', '')}".strip() + ")"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)  # the first on top
    axes.set_xscale("symlog", base=2, linthresh=0.125)  # half and double are equally far off
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("model / published (grey: tolerance)")
    axes.set_title("Model against published figures")
    axes.legend()
    return figure


def tolerance_band(row):
    """The ratios that a row accepts; None where it accepts one value or has one bound only."""
    text = str(row.get("tolerance", ""))
    try:
        if text.endswith("%"):
            share = float(text[:-1]) / 100
            return 1 - share, 1 + share
        low, high = text.split(" to ")
        return float(low) / row["published"], float(high) / row["published"]
    except ValueError:
        return None


def save(figure, folder, name):
    figure.tight_layout()
    figure.savefig(os.path.join(folder, name + ".svg"), metadata={"Date": None, "Creator": None})
    figure.savefig(os.path.join(folder, name + ".png"), metadata={"Software": None})
    pyplot.close(figure)
    print(f"{os.path.join(folder, name)}.svg, .png")


def draw_all(folder, sources):
    """Draws each (name, function, data) and returns how many plots there were."""
    drawn = 0
    for name, function, data in sources:
        try:
            figure = function(data)
        except NoData as error:
            print(f"bench: {name} is left out: {error}", file=sys.stderr)
            continue
        save(figure, folder, name)
        drawn += 1
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--results")
    parser.add_argument("--validation")
    arguments = parser.parse_args()
    matplotlib.rcParams.update(STYLE)
    sources = []
    try:
        if arguments.results:
            benchmarks = results.read_results(arguments.results)
            sources += [
                ("srq_against_rq", srq_against_rq, benchmarks),
                ("qp_scaling", qp_scaling, benchmarks),
                ("watermark", watermark, benchmarks),
            ]
        if arguments.validation:
            rows = read_validation(arguments.validation)
            sources.append(("model_against_published", model_against_published, rows))
        os.makedirs(arguments.folder, exist_ok=True)
        if draw_all(arguments.folder, sources) == 0:
            raise results.UnusableFile("there was nothing to draw")
    except results.UnusableFile as error:
        results.end_with("bench", error)
    except OSError as error:
        results.end_with("bench", f"cannot write to '{arguments.folder}': {error.strerror}")


if __name__ == "__main__":
    main()
