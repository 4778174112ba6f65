"""Rows of the report, Mingle beside a rival, in one file for all measurements.

    report.py ROWS REPORT MACHINE    makes REPORT.json and REPORT.md of the file of rows
"""

import json
import os
import statistics
import sys
import time

ROWS_ENV = "MINGLE_BENCH_ROWS"
# In the order of the report.
SECTIONS = ["planner", "training", "mixing", "wire", "round", "memory", "rivals", "learning", "recommenders"]


def quartiles(ratios):
    """The lower quartile, the median and the upper one of the ratios of the turns."""
    if len(ratios) < 2:
        return ratios * 3
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return [low, middle, high]


def row(section, what, rival, unit, ours, theirs, ratios):
    """Prints a row, and adds it to the report where there is one. A ratio above 1 is in favour of Mingle."""
    low, ratio, high = quartiles(ratios)
    print(f"{what:<56} {ours:>10.3f} {theirs:>10.3f} {unit:<5} {ratio:>6.2f}  [{low:.2f}, {high:.2f}]  {rival}", flush=True)
    path = os.environ.get(ROWS_ENV)
    if path:
        entry = {"section": section, "what": what, "rival": rival, "unit": unit, "ours": ours, "theirs": theirs,
                 "ratio": ratio, "spread": [low, high]}
        with open(path, "a", encoding="utf-8") as rows:
            rows.write(json.dumps(entry) + "\n")


def head(title):
    """Prints the heading of the columns."""
    print(f"\n{title:<56} {'mingle':>10} {'rival':>10} {'':<5} {'ratio':>6}  quartiles     rival", flush=True)


def markdown(rows):
    """The report in Markdown, with one table a section."""
    lines = []
    for section in SECTIONS:
        chosen = [entry for entry in rows if entry["section"] == section]
        if not chosen:
            continue
        lines += ["", f"## {section}", "", "| | Mingle | rival | | ratio | quartiles | rival is |",
                  "| --- | ---: | ---: | --- | ---: | --- | --- |"]
        for entry in chosen:
            low, high = entry["spread"]
            lines.append(f"| {entry['what']} | {entry['ours']:.3g} | {entry['theirs']:.3g} | {entry['unit']} "
                         f"| {entry['ratio']:.2f} | {low:.2f} to {high:.2f} | {entry['rival']} |")
    return "\n".join(lines[1:]) + "\n"


def main():
    rows_path, report, machine = sys.argv[1:]
    with open(rows_path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    facts = dict(line.split(maxsplit=1) for line in machine.splitlines())
    date = time.strftime("%Y-%m-%d")
    with open(f"{report}.json", "w", encoding="utf-8") as file:
        json.dump({"schema": "mingle.bench/1", "date": date, **facts, "rows": rows}, file, indent=1)
    with open(f"{report}.md", "w", encoding="utf-8") as file:
        file.write("\n".join(f"- {name}: {fact}" for name, fact in {"date": date, **facts}.items()) + "\n\n" + markdown(rows))
    print(f"wrote {report}.json and {report}.md: {len(rows)} rows")


if __name__ == "__main__":
    main()
