"""What S3 says when it refuses, sorted by what can be done about it.

botocore's exceptions are told apart by their names and codes; their classes are looked up only
when something failed, so that this module can be imported without the extra being installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from eva.model.errors import EvaError
from eva.ports.storage import StorageAccessError, StorageFullError, StorageUnreachableError

_PERMISSION = "permission is missing: allow s3:ListBucket, GetObject, PutObject and DeleteObject"
_REMEDIES = {
    "NoSuchBucket": "the bucket does not exist: create it, or correct its name",
    "404": "the bucket or object does not exist: create the bucket, or correct its name",
    "NoSuchKey": "the object does not exist: it was removed meanwhile",
    "AccessDenied": _PERMISSION,
    "403": _PERMISSION,
    "InvalidAccessKeyId": "the access key is unknown: check the credentials",
    "SignatureDoesNotMatch": "the secret key does not fit the access key: check the credentials",
    "ExpiredToken": "the credentials have expired: renew them",
    "NoCredentialsError": "no credentials were found: set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or give the machine a role",
    "PartialCredentialsError": "half of the credentials is missing: set key and secret both",
    "PermanentRedirect": "the bucket is in another region: name it with ?region=",
}
_FULL = {"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "ServiceQuotaExceeded"}
_PASSING = {"SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "InternalError", "Throttling"}
_LOST = {
    "ConnectionError",
    "ConnectionClosedError",
    "ConnectTimeoutError",
    "EndpointConnectionError",
    "IncompleteReadError",
    "ProxyConnectionError",
    "ReadTimeoutError",
    "ResponseStreamingError",
    "RetriesExceededError",
    "SSLError",
}


@contextmanager
def typed_s3_errors(where: object, what: str) -> Iterator[None]:
    """Failures of boto3 as errors of the storage port; `what` was being done with `where`."""
    try:
        yield
    except _raised_by_boto() as error:
        raise _typed(error, f"{where}: failed while {what}") from error


def _raised_by_boto() -> tuple[type[Exception], ...]:
    """Looked up only when something was raised."""
    core = import_module("botocore.exceptions")
    return (
        core.BotoCoreError,
        core.ClientError,
        import_module("boto3.exceptions").Boto3Error,
        import_module("s3transfer.exceptions").RetriesExceededError,
    )


def _typed(error: Exception, what: str) -> EvaError:
    cause = _innermost(error)
    response = getattr(cause, "response", None) or {}
    code = str(response.get("Error", {}).get("Code", type(cause).__name__))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _FULL or status == 507:
        return StorageFullError(f"{what} ({code}): free space there, or raise the quota")
    if code in _LOST or code in _PASSING or status >= 500:
        return StorageUnreachableError(f"{what} ({cause}): try again, and check the endpoint")
    remedy = _REMEDIES.get(code, "check the bucket, the credentials and the endpoint")
    return StorageAccessError(f"{what} ({code}): {remedy}")


def _innermost(error: BaseException) -> BaseException:
    """The exception of botocore itself, under the wrappings of the transfer library."""
    wrapped = error.__cause__ or error.__context__
    theirs = wrapped is not None and type(wrapped).__module__.startswith(("botocore.", "boto3."))
    return _innermost(wrapped) if wrapped is not None and theirs else error
