"""The table of refusals against botocore's own exceptions."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from eva.adapters.aws import AwsSettings
from eva.adapters.aws.failures import MEANINGS, ApiError, Verdict, judged, typed_errors
from eva.model.errors import EvaError, InputError, OperatorError, TryAgainError
from eva.ports.cloud import (
    CloudCapacityError,
    CloudQuotaError,
    CloudThrottledError,
    CloudUnauthorisedError,
    CloudUnreachableError,
    InstanceNotFoundError,
    UnsupportedTypeError,
)
from tests.support.moto_server import IMAGE
from tests.unit.adapters.aws.harness import ZONES


def said(code: str, status: int = 400) -> ClientError:
    error = {"Code": code, "Message": "in AWS's words"}
    return ClientError(
        {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, "RunInstances"
    )


@pytest.mark.parametrize(
    ("code", "verdict", "error"),
    [
        ("InsufficientInstanceCapacity", Verdict.NOT_HERE, CloudCapacityError),
        ("VcpuLimitExceeded", Verdict.NOT_THIS_TYPE, CloudQuotaError),
        ("MaxSpotInstanceCountExceeded", Verdict.NOT_THIS_TYPE, CloudQuotaError),
        ("Unsupported", Verdict.NOT_HERE, UnsupportedTypeError),
        ("RequestLimitExceeded", Verdict.SLOWER, CloudThrottledError),
        ("Throttling", Verdict.SLOWER, CloudThrottledError),
        ("UnauthorizedOperation", Verdict.NEVER, CloudUnauthorisedError),
        ("InvalidInstanceID.NotFound", Verdict.NOT_FOUND, InstanceNotFoundError),
        ("IdempotentParameterMismatch", Verdict.TOKEN_SPENT, CloudUnreachableError),
        ("InternalError", Verdict.UNKNOWN, CloudUnreachableError),
        ("NobodyHasSeenThis", Verdict.NEVER, OperatorError),
    ],
)
def test_codes_are_sorted_by_what_follows(
    code: str, verdict: Verdict, error: type[EvaError]
) -> None:
    found = judged(said(code))
    assert found.verdict is verdict
    assert type(found.typed("launching i-1")) is error
    for words in ("launching i-1", code, "in AWS's words", found.meaning.remedy):
        assert words in str(found.typed("launching i-1"))


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://x"),
        ConnectionClosedError(endpoint_url="http://x"),
        ReadTimeoutError(endpoint_url="http://x"),
        said("NobodyHasSeenThis", 500),
        said("503", 503),
    ],
)
def test_without_an_answer_nobody_knows(error: Exception) -> None:
    assert judged(error).verdict is Verdict.UNKNOWN


def test_missing_credentials_call_an_operator() -> None:
    with pytest.raises(CloudUnauthorisedError), typed_errors("listing"):
        raise judged(NoCredentialsError())


def test_only_what_waiting_mends_may_be_tried_again() -> None:
    passing = {Verdict.SLOWER, Verdict.UNKNOWN, Verdict.TOKEN_SPENT, Verdict.NOT_FOUND}
    for code, meaning in MEANINGS.items():
        again = issubclass(meaning.error, TryAgainError)
        assert again == (meaning.verdict in passing), code
        assert isinstance(ApiError(code, "", meaning).typed("x"), EvaError)


def test_wrong_settings_are_told_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        AwsSettings("a b", "", "", (), {}, user_data="#!/bin/sh")
    where = [problem.where for problem in caught.value.problems]
    assert where == ["aws.cluster", "aws.region", "aws.image", "aws.zones", "aws.user_data"]
    with pytest.raises(InputError, match="us-east-1z"):
        AwsSettings("a", "us-east-1", IMAGE, ZONES, {"us-east-1z": "subnet-1"})
