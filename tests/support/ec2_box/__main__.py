"""`python -m tests.support.ec2_box`: a box for people, until Ctrl-C.

It prints what to type elsewhere. Consoles of the machines are kept in a folder, and what is not
ended by then is ended with the box.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.support.ec2_box.box import Ec2Box, ec2_box
from tests.support.ec2_box.machine_image import NoMachineImageError
from tests.support.moto_server import CREDENTIALS, REGION

_WORDS = """\
EC2 in a box is at {endpoint}

In another terminal:

{exports}
    export EVA_HOME=$(mktemp -d)
    eva aws init --region {region} --endpoint-url {endpoint}
    eva up --cloud aws --endpoint-url {endpoint} --advertise {host}

Then `eva submit JOB.yaml` as ever; jobs find the Python of Eva at
/var/lib/eva/environment/bin/python. Nothing here costs anything, whatever the bill says.
Consoles of the machines: {consoles}
`eva down` ends them one by one, Ctrl-C here all at once.
"""


def main() -> int:
    print("Making the machines' image, which takes a minute or two the first time.")  # noqa: T201
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto tells of every call
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    consoles = Path(tempfile.mkdtemp(prefix="ec2-box-"))
    try:
        with ec2_box(consoles) as box:
            print(words(box, consoles), flush=True)  # noqa: T201
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3_600)
    except NoMachineImageError as missing:
        sys.stderr.write(f"this needs {missing}\n")
        return 1
    return 0


def words(box: Ec2Box, consoles: Path) -> str:
    """What somebody types to use it."""
    exports = "\n".join(f"    export {name}={value}" for name, value in CREDENTIALS.items())
    return _WORDS.format(
        endpoint=box.endpoint, exports=exports, region=REGION, host=box.host, consoles=consoles
    )


if __name__ == "__main__":
    sys.exit(main())
