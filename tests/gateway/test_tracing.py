"""A request to a gateway goes on with its caller's trace; the answer in it belongs to that of the question."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker import AsyncBroker
from broker.telemetry.otel import OpenTelemetry
from broker.testing import RunningServer

from .site import serving
from .test_answering import asked

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_an_answer_over_http_is_linked_to_its_request(server: RunningServer, namespace: str) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    observer = OpenTelemetry(tracer_provider=provider)
    async with (
        AsyncBroker(server.url, namespace=namespace, observer=observer) as broker,
        serving(broker) as site,
    ):
        interrupt_id = await asked(broker)
        async with site.client(await site.key()) as ada:
            path, body = f"/v1/interrupts/{interrupt_id}/answer", {"answer": {"kind": "approve"}}
            done = await ada.post(path, json=body, headers={"traceparent": CALLER})
            assert done.status_code == 200
    spans = {one.name: one for one in kept.get_finished_spans()}
    pause, answer, request = (spans[name] for name in ("broker.suspend", "broker.answer", "HTTP POST"))
    assert answer.context is not None
    assert pause.context is not None
    assert request.parent is not None
    assert f"{request.parent.trace_id:032x}-{request.parent.span_id:016x}" == CALLER[3:-3]
    assert answer.parent is not None
    assert answer.parent.span_id == pause.context.span_id
    assert [link.context for link in answer.links] == [request.context]
