"""EC2 in a box: moto's API, and behind each instance a container that boots and is the machine.

`machine_image` makes what a machine boots: Debian with systemd, the aws command line and a folder
of wheels instead of a package index. `machines` starts one for each instance that is launched, and
tells the API what became of it. `box` puts both behind one endpoint, and
`python -m tests.support.ec2_box` does that for people.

What is real: the boot by systemd, the user data, the metadata service with the credentials of the
instance profile, S3 by its protocol, the network between master and workers, power off and power
cut. What is not: hardware (GPUs are played, cores and memory are this machine's), security groups,
images other than this one, and whatever moto leaves out of EC2.
"""

from tests.support.ec2_box.box import Ec2Box, ec2_box

__all__ = ["Ec2Box", "ec2_box"]
