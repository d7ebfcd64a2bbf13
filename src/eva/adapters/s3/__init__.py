"""Global storage in an S3 bucket, of AWS or of any endpoint that speaks its protocol. An extra."""

from eva.adapters.s3.bucket import Bucket, Location
from eva.adapters.s3.storage import S3Storage

__all__ = ["Bucket", "Location", "S3Storage"]
