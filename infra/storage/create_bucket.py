"""Create the object store's bucket if it does not exist, and refuse a store that ignores conditional puts."""

from infra.settings import settings
from infra.storage.blobs import open_blobs, require_conditional_puts
from infra.storage.buckets import BucketBlobs

if __name__ == "__main__":
    blobs = open_blobs(settings())
    if isinstance(blobs, BucketBlobs):
        blobs.ensure_bucket()
    require_conditional_puts(blobs)
