"""Counts and times of the service, in the text format of Prometheus. Nothing in them is about the content of texts."""

import os
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters that only the event loop changes."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self.texts: Counter[str] = Counter()  # by model
        self.characters: Counter[str] = Counter()
        self.entities: Counter[str] = Counter()
        self._slots: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(SECONDS) + 1))
        self._seconds: Counter[str] = Counter()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self.requests[route, status] += 1
        self._slots[route][bisect_left(SECONDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter of seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything as Prometheus reads it; `gauges` are current values, each with its help."""
        return "".join(f"{line}\n" for line in self._lines(gauges))

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from head("requests_total", "counter", "Requests answered, by route and status.")
        for (route, status), count in sorted(self.requests.items()):
            yield f"wingspan_requests_total{labeled(route=route, status=str(status))} {count}"
        yield from head("request_seconds", "histogram", "Time to the answer, by route.")
        for route, slots in sorted(self._slots.items()):
            for bound, count in zip([*map(str, SECONDS), "+Inf"], accumulate(slots), strict=True):
                yield f"wingspan_request_seconds_bucket{labeled(route=route, le=bound)} {count}"
            yield f"wingspan_request_seconds_sum{labeled(route=route)} {self._seconds[route]:.6f}"
            yield f"wingspan_request_seconds_count{labeled(route=route)} {sum(slots)}"
        counters = {
            "texts": (self.texts, "Texts predicted, by model."),
            "characters": (self.characters, "Characters of these texts, by model."),
            "entities": (self.entities, "Entities found, by model."),
        }
        for name, (counts, about) in counters.items():
            yield from head(f"{name}_total", "counter", about)
            for model, count in sorted(counts.items()):
                yield f"wingspan_{name}_total{labeled(model=model)} {count}"
        for name, (about, value) in gauges.items():
            yield from head(name, "gauge", about)
            yield f"wingspan_{name} {value:g}"


def head(name: str, kind: str, about: str) -> Iterator[str]:
    """The two lines before the values of a metric."""
    yield f"# HELP wingspan_{name} {about}"
    yield f"# TYPE wingspan_{name} {kind}"


def labeled(**labels: str) -> str:
    """Labels in braces, with escapes."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{value.translate(escapes)}"' for name, value in labels.items()) + "}"


def resident_bytes() -> float:
    """The memory of this process, where the system tells."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0.0
