"""What EC2 says when it refuses, and what follows from it: one table.

The verdict decides what happens next: another zone, another type, more slowly, or nobody knows and
the same must be asked again. What is not in the table is judged by its HTTP status: a refusal (4xx)
had no effect; anything else may have had one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from eva.model.errors import EvaError, OperatorError
from eva.ports.cloud import (
    CloudCapacityError,
    CloudQuotaError,
    CloudThrottledError,
    CloudUnauthorisedError,
    CloudUnreachableError,
    InstanceNotFoundError,
    UnsupportedTypeError,
)


class Verdict(enum.Enum):
    NOT_HERE = "another zone may have it"  # no effect
    NOT_THIS_TYPE = "no zone will give this type; another type may do"  # no effect
    NEVER = "nothing like it will be given until somebody mends something"  # no effect
    SLOWER = "too many calls"  # no effect
    UNKNOWN = "it may or may not have happened"
    TOKEN_SPENT = "this client token was used before, for what is not quite the same"  # noqa: S105  no secret
    NOT_FOUND = "there is no such instance, or it is too new to be seen"


@dataclass(frozen=True, slots=True)
class Meaning:
    verdict: Verdict
    error: type[EvaError]
    remedy: str


_CAPACITY = Meaning(Verdict.NOT_HERE, CloudCapacityError, "wait, or allow more zones and types")
_ADDRESSES = Meaning(Verdict.NOT_HERE, CloudCapacityError, "give the subnet more addresses")
_QUOTA = Meaning(
    Verdict.NOT_THIS_TYPE,
    CloudQuotaError,
    "raise the quota of this family under Service Quotas, or allow other families",
)
_VOLUMES = Meaning(Verdict.NEVER, CloudQuotaError, "raise the account's quota of EBS volumes")
_UNSUPPORTED = Meaning(
    Verdict.NOT_HERE, UnsupportedTypeError, "leave the type out of the catalog, or allow more zones"
)
_NO_SUCH_TYPE = Meaning(
    Verdict.NOT_THIS_TYPE, UnsupportedTypeError, "leave the type out of the catalog"
)
_THROTTLED = Meaning(Verdict.SLOWER, CloudThrottledError, "ask again more slowly")
_UNKNOWN = Meaning(Verdict.UNKNOWN, CloudUnreachableError, "ask again, and check the endpoint")
_PERMISSION = Meaning(
    Verdict.NEVER,
    CloudUnauthorisedError,
    "allow the call (`eva aws policies` prints all that are needed, docs/aws.md says what for)",
)
_CREDENTIALS = Meaning(
    Verdict.NEVER, CloudUnauthorisedError, "check the credentials, and the machine's clock"
)
_NO_CREDENTIALS = Meaning(
    Verdict.NEVER, CloudUnauthorisedError, "set AWS_PROFILE or give the machine a role"
)
_ACCOUNT = Meaning(Verdict.NEVER, CloudUnauthorisedError, "finish or unblock the account with AWS")
_IMAGE = Meaning(Verdict.NEVER, OperatorError, "name an image of this region")
_NETWORK = Meaning(Verdict.NEVER, OperatorError, "name subnets and groups of this region")
_SPENT = Meaning(Verdict.TOKEN_SPENT, CloudUnreachableError, "ask again in a minute")
_MISSING = Meaning(Verdict.NOT_FOUND, InstanceNotFoundError, "ask again, or launch it")
_OTHER = Meaning(Verdict.NEVER, OperatorError, "see what AWS says, and mend the settings")

MEANINGS: Mapping[str, Meaning] = {
    code: meaning
    for meaning, codes in (
        (_CAPACITY, "InsufficientInstanceCapacity InsufficientHostCapacity InsufficientCapacity"),
        (_CAPACITY, "InsufficientReservedInstanceCapacity SpotMaxPriceTooLow"),
        (_ADDRESSES, "InsufficientFreeAddressesInSubnet"),
        (_QUOTA, "VcpuLimitExceeded InstanceLimitExceeded MaxSpotInstanceCountExceeded"),
        (_VOLUMES, "VolumeLimitExceeded MaxIOPSLimitExceeded"),
        (_UNSUPPORTED, "Unsupported UnsupportedOperation UnsupportedHostConfiguration"),
        (_NO_SUCH_TYPE, "InvalidInstanceType"),
        (_THROTTLED, "RequestLimitExceeded Throttling ThrottlingException ThrottledException"),
        (_THROTTLED, "EC2ThrottledException RequestThrottled TooManyRequestsException SlowDown"),
        (_UNKNOWN, "InternalError InternalFailure ServiceUnavailable Unavailable RequestTimeout"),
        (_PERMISSION, "UnauthorizedOperation AccessDenied AccessDeniedException"),
        (_CREDENTIALS, "AuthFailure InvalidClientTokenId SignatureDoesNotMatch RequestExpired"),
        (_CREDENTIALS, "ExpiredToken ExpiredTokenException UnrecognizedClientException"),
        (_NO_CREDENTIALS, "NoCredentialsError PartialCredentialsError CredentialRetrievalError"),
        (_NO_CREDENTIALS, "ProfileNotFound TokenRetrievalError SSOTokenLoadError"),
        (_ACCOUNT, "OptInRequired Blocked PendingVerification"),
        (_IMAGE, "InvalidAMIID.NotFound InvalidAMIID.Malformed InvalidAMIID.Unavailable"),
        (_NETWORK, "InvalidSubnetID.NotFound InvalidSubnet InvalidGroup.NotFound"),
        (_SPENT, "IdempotentParameterMismatch IdempotentInstanceTerminated"),
        (_MISSING, "InvalidInstanceID.NotFound InvalidInstanceID.Malformed"),
    )
    for code in codes.split()
}


class ApiError(Exception):
    """A call that failed; becomes an error of the port where it leaves the adapter."""

    def __init__(self, code: str, message: str, meaning: Meaning) -> None:
        self.code, self.meaning = code, meaning
        super().__init__(f"{code}: {message}" if message else code)

    @property
    def verdict(self) -> Verdict:
        return self.meaning.verdict

    def typed(self, what: str) -> EvaError:
        return self.meaning.error(f"{what} failed ({self}): {self.meaning.remedy}")


@contextmanager
def typed_errors(what: str) -> Iterator[None]:
    """Failed calls as errors of the cloud port; `what` was being done."""
    try:
        yield
    except ApiError as error:
        raise error.typed(what) from error


def judged(error: Exception) -> ApiError:
    """An exception of botocore, by its code if EC2 answered and by its class if it did not."""
    response = getattr(error, "response", None) or {}
    said = response.get("Error", {})
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(said.get("Code", type(error).__name__))
    message = str(said.get("Message", error))
    return ApiError(code, message, MEANINGS.get(code) or (_OTHER if _refused(status) else _UNKNOWN))


def _refused(status: int) -> bool:
    return 400 <= status < 500


def raised_by_boto() -> tuple[type[Exception], ...]:
    """Looked up only when something was raised, so that the extra is not needed to import this."""
    core = import_module("botocore.exceptions")
    return (core.BotoCoreError, core.ClientError)
