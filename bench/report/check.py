#!/usr/bin/env python3
"""Compares modelled counters with a baseline, or stores them as one.

  check.py compare BASELINE RESULTS [--filter RE]
  check.py write RESULTS BASELINE
  check.py validate BASELINE

RESULTS is Google Benchmark's JSON; a BASELINE has the same form, with nothing in it that differs from
one machine to the next.  Exit status of compare: 0 if nothing has become worse, 1 if something has,
2 if a file is unusable.
"""

import argparse
import json
import os
import re
import sys

import results


def compare(baseline, now):
    """Rows (benchmark, counter, baseline, now, change) of all that differs; how many are worse."""
    rows, worse = [], 0
    for name, old in baseline.items():
        new = now.get(name)
        if new is None:
            rows.append((name, "", "", "", "MISSING: the benchmark was not run"))
            worse += 1
        elif new.error is not None:
            rows.append((name, "", "", "", f"FAILED: {new.error}"))
            worse += 1
        else:
            for counter in results.MODELLED_COUNTERS:
                row, is_worse = compare_counter(name, counter, old, new)
                rows += row
                worse += is_worse
    for name, new in now.items():
        if name in baseline:
            continue
        if new.error is not None:
            rows.append((name, "", "", "", f"FAILED: {new.error}"))
            worse += 1
        else:
            rows.append((name, "", "", "", "new: not in the baseline"))
    return rows, worse


def compare_counter(name, counter, old, new):
    before, after = old.counters.get(counter), new.counters.get(counter)
    if before == after:
        return [], 0
    if before is None:
        return [(name, counter, "", results.text_of(after), "new: not in the baseline")], 0
    if after is None:
        return [(name, counter, results.text_of(before), "", "MISSING: no longer counted")], 1
    by = f" by {abs((after - before) / before) * 100:.3g} %" if before != 0 else ""
    verdict = "WORSE" if after > before else "better"
    texts = results.text_of(before), results.text_of(after)
    return [(name, counter, *texts, verdict + by)], int(after > before)


def print_table(rows):
    table = [("BENCHMARK", "COUNTER", "BASELINE", "NOW", "CHANGE"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for name, counter, before, after, change in table:
        print(
            f"{name:<{widths[0]}}  {counter:<{widths[1]}}  {before:>{widths[2]}}  "
            f"{after:>{widths[3]}}  {change}"
        )


def run_compare(arguments):
    try:
        pattern = re.compile(arguments.filter)
    except re.error as error:
        raise results.UnusableFile(f"--filter: '{arguments.filter}': {error}") from None
    baseline, now = (
        {name: benchmark for name, benchmark in all_of_file.items() if pattern.search(name)}
        for all_of_file in (read_baseline(arguments.baseline), results.read_results(arguments.results))
    )
    if not baseline and not now:
        raise results.UnusableFile(f"--filter: no benchmark matches '{arguments.filter}'")
    rows, worse = compare(baseline, now)
    if rows:
        print_table(rows)
        print()
    compared = sum(1 for name in now if name in baseline)
    if worse:
        print(f"{compared} benchmarks compared with {arguments.baseline}: {worse} changes for the worse")
        return 1
    if rows:
        print(
            f"{compared} benchmarks compared with {arguments.baseline}: nothing is worse; store what"
            f" is new or better with --write-baseline {arguments.baseline}"
        )
    else:
        print(f"{compared} benchmarks compared with {arguments.baseline}: no modelled counter differs")
    return 0


def read_baseline(path):
    baseline = results.read_results(path)
    for benchmark in baseline.values():
        if benchmark.error is not None:
            raise results.UnusableFile(f"'{path}': {benchmark.name}: {benchmark.error}")
    return baseline


def run_write(arguments):
    now = results.read_results(arguments.results)
    failed = [f"{benchmark.name}: {benchmark.error}" for benchmark in now.values() if benchmark.error]
    if failed:
        raise results.UnusableFile("no baseline is stored, since not all is well: " + "; ".join(failed))
    entries = [{"name": name, **now[name].counters} for name in sorted(now)]
    text = ",\n".join("    " + json.dumps(entry) for entry in entries)
    temporary = arguments.baseline + ".new"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write('{\n  "benchmarks": [\n' + text + "\n  ]\n}\n")
        os.replace(temporary, arguments.baseline)
    except OSError as error:
        raise results.UnusableFile(f"cannot write '{arguments.baseline}': {error.strerror}") from None
    print(f"{len(entries)} benchmarks stored in {arguments.baseline}")
    return 0


def run_validate(arguments):
    read_baseline(arguments.baseline)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("compare")
    command.add_argument("baseline")
    command.add_argument("results")
    command.add_argument("--filter", default="", help="only benchmarks whose name matches")
    command.set_defaults(run=run_compare)
    command = commands.add_parser("write")
    command.add_argument("results")
    command.add_argument("baseline")
    command.set_defaults(run=run_write)
    command = commands.add_parser("validate")
    command.add_argument("baseline")
    command.set_defaults(run=run_validate)
    arguments = parser.parse_args()
    try:
        return arguments.run(arguments)
    except results.UnusableFile as error:
        return results.end_with("bench", error)


if __name__ == "__main__":
    sys.exit(main())
