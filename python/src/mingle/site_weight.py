"""The weight of one site's changes beside those of other sites: the mean of all, or a mean by training samples.

    factor = min(32, n / N)        n: training samples of this site, N: those of a site that counts as one

The same rule as `--weight` of the built-in models (docs/training.md, "How much a site counts").
"""

from __future__ import annotations

import logging
import re

from mingle.errors import MingleError

LARGEST_FACTOR = 32.0
"""A larger step than those that a training was tuned for would leave the region in which its gradient is a useful approximation."""

log = logging.getLogger("mingle")


def factor_of(weight: str, samples: int | None) -> float:
    """The factor of the changes of a site: 1 for `equal`, and by its training samples for `samples:N`.

    Raises `MingleError` for another weight, and where `samples:N` has no samples to count.
    """
    if weight == "equal":
        return 1.0
    found = re.fullmatch(r"samples:0*([1-9][0-9]{0,17})", weight) if isinstance(weight, str) else None
    if found is None:
        raise MingleError(f"weight is \"equal\" or \"samples:N\", with the training samples N of a site that counts as one, and not {weight!r}")
    if samples is None or samples < 1:
        raise MingleError(f"weight=\"{weight}\" needs the number of training samples, 1 at least: say samples=...")
    factor = samples / int(found[1])
    if factor > LARGEST_FACTOR:
        log.warning(
            "with weight=\"%s\" this site counts %g times as much as one of that size, and its %d samples would be more: let all sites name a larger number",
            weight,
            LARGEST_FACTOR,
            samples,
        )
    return min(factor, LARGEST_FACTOR)
