"""Renting from AWS: EC2 behind the cloud port. An extra, `eva-scheduler[aws]`."""

from eva.adapters.aws.ec2 import AwsCloud, open_ec2
from eva.adapters.aws.settings import AwsSettings

__all__ = ["AwsCloud", "AwsSettings", "open_ec2"]
