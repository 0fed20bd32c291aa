"""A collector of OpenTelemetry: takes spans and metrics as OTLP over HTTP, on loopback."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """``spans``: those that came, in no order."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def find(self, name: str, **facts: str) -> Any:
        """The span of this name with these attributes of ours, or None."""
        for span in list(self.spans):
            held = read_facts(span)
            if span.name == name and all(held.get(f"signalbox.{fact}") == value for fact, value in facts.items()):
                return span
        return None


def read_facts(span: Any) -> dict[str, Any]:
    """The attributes of a span."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
