"""Groups as units: whether the rows of one group can be kept together, or are too many for that."""

from collections import Counter
from collections.abc import Sequence

from wingspan.text import Document

FEW = 20
"""With fewer units than this, resampling says little and parts come out uneven."""
MOST = 0.9  # a group with a larger share of the rows leaves nothing to compare it with


def too_coarse(documents: Sequence[Document]) -> str | None:
    """Why rows count one by one although they have groups, in a sentence; None where groups are used, or rows few."""
    sizes = Counter(number if row.group is None else row.group for number, row in enumerate(documents))
    if len(sizes) == len(documents) or len(documents) < FEW:
        return None
    largest, rows = sizes.most_common(1)[0]
    if rows > MOST * len(documents):
        return f"{rows:,} of {len(documents):,} rows are of group {largest!r}, so that rows count one by one"
    if len(sizes) < FEW:
        return f"{len(documents):,} rows are of {len(sizes)} groups only, so that rows count one by one"
    return None
