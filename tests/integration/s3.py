"""An S3-compatible server on loopback: moto, one request at a time, for it checks a condition and writes in two steps."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


@contextmanager
def s3_server(bucket: str, secret: str = "secret") -> Iterator[str]:
    """Its address while it runs, with one empty bucket; keys are "key" and the secret."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    boto3.client(
        "s3", endpoint_url=address, aws_access_key_id="key", aws_secret_access_key=secret, region_name="us-east-1"
    ).create_bucket(Bucket=bucket)
    try:
        yield address
    finally:
        server.shutdown()
