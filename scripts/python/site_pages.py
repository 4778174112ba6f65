"""Hooks of MkDocs for the site of docs/: the order of the pages, and links out of the folder.

Pages are in the groups of docs/README.md, which links to each of them. Links to files outside of docs/ go to the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GROUP = re.compile(r"^## (.+)$", re.MULTILINE)
LOCAL_PAGE = re.compile(r"\]\(([\w-]+\.md)\)")
OUTWARD = re.compile(r"(\]\(|\]: )\.\./([^)\s]*)")


def on_config(config: Any) -> Any:
    """Sets the navigation: the overview, then a section for each group with links to pages."""
    text = (Path(config["docs_dir"]) / "README.md").read_text(encoding="utf-8")
    parts = GROUP.split(text)
    pages_of = {heading: list(dict.fromkeys(LOCAL_PAGE.findall(body))) for heading, body in zip(parts[1::2], parts[2::2])}
    placed: set[str] = set()
    config["nav"] = [{"Overview": "README.md"}]
    for heading, pages in pages_of.items():
        new = [page for page in pages if page not in placed]
        # The list of words comes before the groups, and links to a page of one of them.
        if heading.startswith("Words") or not new:
            continue
        placed.update(new)
        config["nav"].append({heading: new})
    return config


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Points links that leave docs/ at the repository."""
    files = f"{config['repo_url'].rstrip('/')}/blob/main/"
    return OUTWARD.sub(lambda link: f"{link[1]}{files}{link[2]}", markdown)
