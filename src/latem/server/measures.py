"""What the server counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Measures:
    """Counters of one server; two servers in one process do not disturb each other."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "latem_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "latem_request_seconds",
            "Time from a request's head to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch = Histogram(
            "latem_batch_items",
            "Images or pictures that were worked on together.",
            ["kind"],
            buckets=_ITEMS,
            registry=self.registry,
        )
        self.images = Counter(
            "latem_images", "Images named.", ["model", "kind"], registry=self.registry
        )
        self.reloads = Counter(
            "latem_model_reloads",
            "Model files that were read again.",
            ["model", "result"],
            registry=self.registry,
        )
        self.version = Gauge(
            "latem_model_version", "How often a model was read.", ["model"], registry=self.registry
        )
        self.sessions = Gauge("latem_sessions", "Sessions kept.", registry=self.registry)
        self.session_bytes = Gauge(
            "latem_session_bytes", "Memory of all sessions, about.", registry=self.registry
        )
        self.waiting = Gauge(
            "latem_open_work", "Pieces of work begun or waiting.", registry=self.registry
        )

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)
