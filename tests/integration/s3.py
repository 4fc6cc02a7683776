"""S3-compatible server on loopback: moto, one request at a time, for it checks a condition and writes in two steps.

Only whole requests are let in: an idle connection that a client holds open would shut out all others.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from threading import Lock, Thread
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


@contextmanager
def s3_server(bucket: str, secret: str = "secret") -> Iterator[str]:
    """Yield the address of a server with one empty bucket; its keys are "key" and the secret."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = _one_by_one(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    boto3.client(
        "s3", endpoint_url=address, aws_access_key_id="key", aws_secret_access_key=secret, region_name="us-east-1"
    ).create_bucket(Bucket=bucket)
    try:
        yield address
    finally:
        server.shutdown()


def _one_by_one(application: Callable[..., Any]) -> Callable[..., list[bytes]]:
    free = Lock()

    def answered(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(length))
        with free:
            return list(application(environ, start_response))

    return answered
