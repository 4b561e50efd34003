"""Benchmark results in Google Benchmark's JSON, as far as they are modelled.

A modelled counter is the same number on every machine, and lower is better for all of them; wall
times are not looked at.
"""

import json
import sys

MODELLED_COUNTERS = (
    "ns/msg",
    "dma_reads/msg",
    "dma_writes/msg",
    "tlps/msg",
    "cache_misses/msg",
    "rnr_naks",
    "limit_events",
)


class UnusableFile(Exception):
    """A file that is missing or is not what it should be; the message names it."""


class Benchmark:
    """A benchmark that ran, and its modelled counters.

    The figures are printed with all digits of a double, so equal numbers are equal figures.
    """

    def __init__(self, name, error=None):
        self.name = name
        self.error = error  # why it has no counters
        self.counters = {}

    def family_and_arguments(self):
        """("Model/QpScaling", {"queue": "srq", "qps": "16"}) of Model/QpScaling/queue:srq/qps:16."""
        parts = self.name.split("/")
        arguments = dict(part.split(":", 1) for part in parts if ":" in part)
        return "/".join(part for part in parts if ":" not in part), arguments


def read_json(path):
    """The parsed file; all its numbers are float."""

    def refuse(constant):
        raise UnusableFile(f"'{path}': {constant} is not a number that can be compared")

    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, parse_int=float, parse_constant=refuse)
    except OSError as error:
        raise UnusableFile(f"cannot read '{path}': {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UnusableFile(f"'{path}' is not JSON: {error}") from None


def read_results(path):
    """Benchmarks with modelled counters, and those that failed, by name in the file's order.

    Of repetitions the aggregates are left out.  Repetitions with different figures are a failure:
    what is modelled does not vary.
    """
    document = read_json(path)
    entries = document.get("benchmarks") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise UnusableFile(f"'{path}' has no list \"benchmarks\" as Google Benchmark's results have")
    benchmarks = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise UnusableFile(f"'{path}': a benchmark without a name")
        if entry.get("run_type") == "aggregate":
            continue
        benchmark = read_entry(path, entry)
        if not benchmark.counters and benchmark.error is None:
            continue
        earlier = benchmarks.setdefault(benchmark.name, benchmark)
        if earlier.counters != benchmark.counters and earlier.error is None:
            earlier.error = benchmark.error or "its repetitions differ"
    if not benchmarks:
        raise UnusableFile(f"'{path}' has no benchmark with a modelled counter")
    return benchmarks


def read_entry(path, entry):
    name = entry["name"]
    # With repetitions Google Benchmark appends them to the name of the single run.
    benchmark = Benchmark("/".join(p for p in name.split("/") if not p.startswith("repeats:")))
    if entry.get("error_occurred"):
        benchmark.error = str(entry.get("error_message", "failed"))
        return benchmark
    for counter in MODELLED_COUNTERS:
        if counter not in entry:
            continue
        value = entry[counter]
        if not isinstance(value, float):
            raise UnusableFile(f"'{path}': {counter} of {name} is not a number")
        benchmark.counters[counter] = value
    return benchmark


def text_of(number):
    """As short as it gets without losing a digit that a double has."""
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else repr(number)


def end_with(program, error):
    """Ends the program: its input was unusable."""
    print(f"{program}: {error}", file=sys.stderr)
    sys.exit(2)
