"""Traces and counts for OpenTelemetry. Needs the extra `telemetry`.

    worker = Worker(url, observer=OpenTelemetry())
    broker = AsyncBroker(url, observer=OpenTelemetry())

The providers are those of the process, or given. A suspension writes the trace it belongs to with its questions; the
answer and the attempt that goes on with the run, in whichever process, belong to the same trace.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

from ..errors import MissingExtra

if find_spec("opentelemetry") is None:
    raise MissingExtra("telemetry", "OpenTelemetry")

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, SpanKind, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from . import Observation, Tracer
from .metrics import COUNTED, Counting, Metric, Sort

_TEXT: Final = TraceContextTextMapPropagator()
NAME: Final = "broker"


class OpenTelemetry(Tracer):
    """An observer that makes spans and counts what its process does.

    Attributes are ids, operations and outcomes: nothing that was said. One of it serves any number of brokers.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        release = version("interrupt-broker")
        self._tracer = trace.get_tracer(NAME, release, tracer_provider)
        self._counting = Counting(_Meter(metrics.get_meter(NAME, release, meter_provider)))

    def told(self, calls: Sequence[Observation], /) -> None:
        """Counts the items of a call; answers are spans, and whatever else happens inside a span is an event of it."""
        self._counting.told(calls)
        here = trace.get_current_span()
        for call in calls:
            if call.op == "answer":
                self._answered(call)
            elif here.is_recording():
                here.add_event(f"broker.{call.op}", _facts(call))

    def _answered(self, call: Observation) -> None:
        now = time.time_ns()
        took = (call.t_return or call.t_call) - call.t_call
        asked = _span_of(call.traceparent)
        here = trace.get_current_span().get_span_context()
        links = [Link(here)] if asked is not None and here.is_valid else []
        context = trace.set_span_in_context(trace.NonRecordingSpan(asked)) if asked is not None else None
        span = self._tracer.start_span(
            "broker.answer", context, SpanKind.PRODUCER, _facts(call), links, now - took
        )
        span.end(now)

    @contextmanager
    def span(
        self, name: str, traceparents: Sequence[str] = (), /, **facts: str | int
    ) -> Iterator[str | None]:
        """A block of work as the present span; see `Tracer.span`."""
        found = [one for one in map(_span_of, dict.fromkeys(traceparents)) if one is not None]
        context, links = None, [Link(one) for one in found[1:]]
        here = trace.get_current_span().get_span_context()
        if found:
            context = trace.set_span_in_context(trace.NonRecordingSpan(found[0]))
            links += [Link(here)] if here.is_valid and here.trace_id != found[0].trace_id else []
        attributes = {f"broker.{key}": value for key, value in facts.items()}
        with self._tracer.start_as_current_span(
            name, context, SpanKind.CONSUMER if found else SpanKind.INTERNAL, attributes, links,
            record_exception=False, set_status_on_exception=False,  # a message may hold what was worked on
        ):  # fmt: skip
            carrier: dict[str, str] = {}
            _TEXT.inject(carrier)
            yield carrier.get("traceparent")


def _span_of(traceparent: str | None) -> trace.SpanContext | None:
    if not traceparent:
        return None
    context = _TEXT.extract({"traceparent": traceparent}, trace.set_span_in_context(trace.INVALID_SPAN))
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def _facts(call: Observation) -> dict[str, str | int | tuple[str, ...]]:
    facts = {
        "broker.run": call.run_id, "broker.session": call.session_id, "broker.interrupts": call.interrupt_ids or None,
        "broker.fence": call.fence, "broker.outcome": call.outcome or call.error,
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value is not None}


class _Meter:
    """The metrics by an OpenTelemetry meter: `broker_answers_total` is `broker.answers` there."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._counters = {
            one: meter.create_counter(named(one), one.unit, one.says)
            for one in COUNTED
            if one.sort is Sort.COUNTER
        }
        self._histograms = {
            one: meter.create_histogram(
                named(one), one.unit, one.says, explicit_bucket_boundaries_advisory=one.buckets
            )
            for one in COUNTED
            if one.sort is Sort.HISTOGRAM
        }

    def add(self, metric: Metric, amount: float, /, *labels: str) -> None:
        self._counters[metric].add(amount, dict(zip(metric.labels, labels, strict=True)))

    def observe(self, metric: Metric, value: float, /, *labels: str) -> None:
        self._histograms[metric].record(value, dict(zip(metric.labels, labels, strict=True)))


def named(metric: Metric) -> str:
    """What a metric is called there: words apart by dots behind the first, without the unit and the sort."""
    plain = metric.name.removesuffix("_total").removesuffix("_seconds")
    return plain.replace("broker_", "broker.", 1)
