"""A real S3 server, as far as moto is one, for the tests of this folder."""

from tests.support.s3_server import s3_client, s3_endpoint, s3_location

__all__ = ["s3_client", "s3_endpoint", "s3_location"]  # fixtures by being here
