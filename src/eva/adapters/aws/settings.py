"""What an operator chooses about EC2, and what the adapter needs to know of time there.

`cluster` is what marks an instance as ours. It must be unique in the account for good: two clusters
of one name would terminate each other's instances, and a new one under an old name would be given
the old one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eva.adapters.aws.user_data import USER_DATA
from eva.model.errors import InputError, Problem
from eva.model.units import MS_PER_SECOND

_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """`subnets` says where instances go, zone by zone; without any, the default VPC is used.

    `software` is the wheel of Eva that an instance fetches, `s3://BUCKET/software/NAME.whl`; empty
    means that Eva is in the image. `user_data` may be any script with the words in braces that
    `request.user_data` knows.
    `settle_ms` is for how long EC2 may not show what it has accepted. `endpoint` is for emulators.
    """

    cluster: str
    region: str
    image: str
    zones: tuple[str, ...] = ()
    subnets: Mapping[str, str] = field(default_factory=dict)
    security_groups: tuple[str, ...] = ()
    instance_profile: str = ""
    root_device: str = "/dev/sda1"
    root_volume_gib: int = 0  # 0: as the image says
    public_address: bool = True
    software: str = ""
    user_data: str = USER_DATA
    join_minutes: int = 30
    endpoint: str | None = None
    settle_ms: int = 60 * MS_PER_SECOND
    set_aside_ms: int = 180 * MS_PER_SECOND
    calls_per_second: float = 5.0
    burst: int = 10

    def __post_init__(self) -> None:
        problems = [
            Problem(f"aws.{name}", message) for name, wrong, message in self._checks() if wrong
        ]
        if problems:
            raise InputError(problems)

    def _checks(self) -> tuple[tuple[str, bool, str], ...]:
        outside = sorted(set(self.subnets) - set(self.usable_zones))
        return (
            (
                "cluster",
                _CLUSTER.fullmatch(self.cluster) is None,
                f"{self.cluster!r} is no name: use letters, digits, dots and hyphens, 63 at most",
            ),
            ("region", not self.region, "is empty: name one, such as us-east-1"),
            ("image", not self.image, "is empty: name an AMI of the region"),
            ("zones", not self.usable_zones, "is empty: name zones, or subnets by zone"),
            ("subnets", bool(outside), f"{', '.join(outside)} not among the zones: add them"),
            (
                "user_data",
                "{bootstrap}" not in self.user_data,
                "does not hold {bootstrap}: say where the worker's bootstrap goes",
            ),
            (
                "software",
                bool(self.software) and not self.software.startswith("s3://"),
                f"{self.software!r} is no wheel in a bucket: write s3://BUCKET/software/NAME.whl",
            ),
            *self._amounts(),
        )

    def _amounts(self) -> Iterator[tuple[str, bool, str]]:
        for name in ("calls_per_second", "burst", "join_minutes"):
            yield name, getattr(self, name) <= 0, f"{getattr(self, name)} is not more than 0"
        for name in ("root_volume_gib", "settle_ms", "set_aside_ms"):
            yield name, getattr(self, name) < 0, f"{getattr(self, name)} is less than 0"

    @property
    def usable_zones(self) -> tuple[str, ...]:
        return self.zones or tuple(sorted(self.subnets))
