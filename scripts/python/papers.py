"""Tables and figures of the five papers: their list, their page, and their commands. See scripts/papers --help.

usage: python papers.py list | page | check | known NAME... | run [-o DIR] [--data DIR] [--minutes N] NAME...
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from papers_measures import MEASURES
from papers_run import CommandFailed, Line, MissingData, Run

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs/papers.md"

Row = dict[str, Any]


def registry() -> tuple[list[Row], list[Row]]:
    """The papers, and their tables and figures, as papers.toml has them; every row has a command or the reason why there is none."""
    found = tomllib.loads(REGISTRY.read_text())
    papers, rows = found["paper"], found["row"]
    keys = {paper["key"] for paper in papers}
    for row in rows:
        assert row["name"].split("/")[0] in keys, f"{row['name']}: there is no such paper"
        assert len({"measure", "by", "missing"} & set(row)) == 1, f"{row['name']}: a measure, a row that has it, or the reason why there is none"
        assert row.get("measure", "plans") in MEASURES, f"{row['name']}: there is no measure {row['measure']}"
    assert len({row["name"] for row in rows}) == len(rows), "two rows have one name"
    return papers, rows


def of_paper(key: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["name"].split("/")[0] == key]


def how(row: Row) -> str:
    """The command of a row, or the reason why there is none."""
    if "missing" in row:
        return str(row["missing"])
    command = f"`scripts/papers {row['by']}`" if "by" in row else f"`scripts/papers {row['name']}`, {row['time']}"
    return f"{command}; {row['note']}" if "note" in row else command


def page_tables(papers: list[Row], rows: list[Row]) -> dict[str, str]:
    """The table of each paper."""
    tables = {}
    for paper in papers:
        lines = ["| | subject | the paper | here | command, or why there is none |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {row['number']} | {row['shows']} | {row['paper']} | {row.get('here', '-')} | {how(row)} |" for row in of_paper(paper["key"], rows)
        ]
        tables[paper["key"]] = "\n".join(lines)
    return tables


def page_with(text: str, tables: dict[str, str]) -> str:
    """The page with these tables between their marks."""
    for key, table in tables.items():
        first, last = f"<!-- papers: {key} -->", f"<!-- end of papers: {key} -->"
        before, found, rest = text.partition(first)
        _, ended, after = rest.partition(last)
        if not (found and ended):
            sys.exit(f"{PAGE.relative_to(ROOT)} has no marks {first} and {last}")
        text = f"{before}{first}\n{table}\n{last}{after}"
    return text


def print_list(papers: list[Row], rows: list[Row]) -> None:
    for paper in papers:
        print(f"{paper['key']}: {paper['name']}")
        for row in of_paper(paper["key"], rows):
            print(f"  {row['name']:<22} {row['number']}: {row['shows']}")
            print(f"  {'':<22} {how(row)}")


def chosen(names: list[str], rows: list[Row], minutes: float | None) -> list[Row]:
    """The rows that were asked for; a row without a command ends the program with the reason, unless its paper was asked for."""
    found: list[Row] = []
    for name in names:
        several = rows if name == "all" else of_paper(name, rows)
        one = [row for row in rows if row["name"] == name]
        if not (several or one):
            sys.exit(f"scripts/papers: there is no {name}: scripts/papers list has all names")
        if one and "by" in one[0]:
            one = [row for row in rows if row["name"] == one[0]["by"]]
        if one and "missing" in one[0]:
            sys.exit(f"scripts/papers: {name} has no command: {one[0]['missing']}")
        found += one or [row for row in several if "measure" in row]
    shorter = [row for row in found if minutes is None or row["minutes"] <= minutes]
    for row in found:
        if row not in shorter:
            print(f"scripts/papers: {row['name']} is left out: {row['time']}", file=sys.stderr)
    return shorter


def joined(row: Row, lines: list[Line]) -> list[tuple[str, str, str]]:
    """The lines of a result beside the paper's numbers, which may have lines of their own."""
    published = dict(row.get("published", {}))
    beside = [(line.what, published.pop(line.what, ""), line.here) for line in lines]
    return beside + [(what, number, "not measured") for what, number in published.items()]


def machine() -> str:
    names = {line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")}
    return f"{os.cpu_count()} processors, {', '.join(names) or platform.machine()}"


def report(row: Row, run: Run, lines: list[Line]) -> str:
    """The page of a result."""
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    table = [f"| {what} | {paper} | {here} |" for what, paper, here in joined(row, lines)]
    text = [f"# {row['name']}: {row['number']}, {row['shows']}", "", f"The paper: {row['paper']}", ""]
    text += [f"| {row.get('columns', '')} | paper | here |", "| --- | --- | --- |", *table, ""]
    text += [f"Note: {row['note']}.\n"] if "note" in row else []
    text += [f"{datetime.date.today()}, commit {commit}, {machine()}, {run.version()}. Commands:", ""]
    return "\n".join(text + [f"    {command}" for command in dict.fromkeys(run.commands)]) + "\n"


def run_rows(rows: list[Row], output: Path, data: Path) -> int:
    """Runs the rows; the number of those that could not be run."""
    failed = 0
    for row in rows:
        run = Run(mingle=os.environ["MINGLE"], root=ROOT, data=data, folder=output / row["name"])
        run.folder.mkdir(parents=True, exist_ok=True)
        try:
            lines = MEASURES[row["measure"]](run, row.get("settings", {}))
        except (MissingData, CommandFailed) as error:
            print(f"scripts/papers: {row['name']}: {error}", file=sys.stderr)
            failed += 1
            continue
        text = report(row, run, lines)
        (run.folder / "result.md").write_text(text)
        print(text)
        print(f"wrote {run.folder}/result.md", file=sys.stderr)
    return failed


def main() -> None:
    papers, rows = registry()
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["list", "page", "check", "known", "run"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", type=Path, default=ROOT / "target/papers")
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--minutes", type=float)
    asked = parser.parse_intermixed_args()
    match asked.what:
        case "list":
            print_list(papers, rows)
        case "page":
            PAGE.write_text(page_with(PAGE.read_text(), page_tables(papers, rows)))
        case "check":
            if page_with(PAGE.read_text(), page_tables(papers, rows)) != PAGE.read_text():
                sys.exit("docs/papers.md differs from scripts/python/papers.toml: write its tables with scripts/papers page")
            print(f"papers: {len(rows)} tables and figures, {sum('missing' not in row for row in rows)} of them with a command, are on the page")
        case "known":
            chosen(asked.names, rows, None)
        case "run":
            sys.exit(1 if run_rows(chosen(asked.names, rows, asked.minutes), asked.o, asked.data.resolve()) else 0)


if __name__ == "__main__":
    main()
