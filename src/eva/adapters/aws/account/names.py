"""What a cluster's resources are called. A name follows from the cluster's, so anybody finds them.

IAM and S3 are stricter about names than EC2 is: what does not fit is cut, and a digest of the whole
keeps two long names apart. Roles and profiles are under a path of their own, by which they can be
listed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from eva.adapters.aws.names import CLUSTER_TAG

IAM_PATH = "/eva/"
BUCKET_PREFIX = "eva-"
_MOST_IAM, _MOST_BUCKET = 64, 63
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Names:
    cluster: str
    account: str

    @property
    def workers(self) -> str:
        """Of the workers' security group, role and instance profile."""
        return fitted(f"eva-{self.cluster}-workers", _MOST_IAM)

    @property
    def master(self) -> str:
        return fitted(f"eva-{self.cluster}-master", _MOST_IAM)

    @property
    def bucket(self) -> str:
        """Names of buckets are one space for all accounts, and small letters only."""
        plain = re.sub(r"[^a-z0-9-]+", "-", self.cluster.lower()).strip("-")
        told = plain if plain == self.cluster else f"{plain}-{_digest(self.cluster)}"
        return fitted(f"{BUCKET_PREFIX}{told}-{self.account}", _MOST_BUCKET)


def tags(cluster: str) -> list[dict[str, str]]:
    """By which everything that is made for a cluster is known."""
    return [{"Key": CLUSTER_TAG, "Value": cluster}]


def fitted(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - _DIGEST - 1]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
