"""What an instance is told to do when it boots: the script, and how its words are filled in.

It is run once, by cloud-init, as root, and leaves the rest to systemd, so that what fails is tried
again and what was begun goes on after a reboot. The order is the point:

1. The watch on the machine's lease. Whatever goes wrong afterwards, a machine whose worker has not
   heard of its master in time powers itself off, which terminates it: a worker that never joins,
   crashes, hangs, or has lost its master for too long. `eva.worker.lease` tells how the lease is
   renewed; until it is there for the first time after a boot, the join limit stands for it. If not
   even the watch can be set, the machine is powered off at once.
2. The bootstrap, which holds the only secret: a token that can be used once.
3. The worker, as a service that first installs the master's own Eva, where `software` names it.

A worker that ends because it is done, or that the master will never have (3), takes the machine
with it; so does one that fails a hundred times within the hour. One that is stopped (143) does
not, and neither does its end stop tasks, which have supervisors of their own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

USER_DATA = """#!/bin/sh
set -eu

power_off() { [ "$?" -eq 0 ] || systemctl poweroff; }
trap power_off EXIT
mkdir -p /var/lib/eva
cat > /var/lib/eva/watch <<'END'
#!/bin/sh
lease=/run/eva-worker.lease
uptime() { cut -d. -f1 /proc/uptime; }
until=$(($(uptime) + 60 * {join_minutes}))
while [ "$(uptime)" -lt "$until" ]; do
    sleep 10
    [ ! -s "$lease" ] || until=$(cat "$lease")
done
echo "no master for too long"
systemctl poweroff
END
chmod 755 /var/lib/eva/watch
cat > /etc/systemd/system/eva-watch.service <<'END'
[Unit]
Description=Power off if the worker of Eva has had no master for too long

[Service]
ExecStart=/var/lib/eva/watch
Restart=always
RestartSec=10
OOMScoreAdjust=-1000

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --now eva-watch
trap - EXIT

cd /var/lib/eva
(umask 077 && printf %s {bootstrap} > bootstrap)

cat > worker <<'END'
#!/bin/sh
set -eu
cd /var/lib/eva
python=python3
capacity={capacity}
software={software}
endpoint={endpoint}
if [ -n "$software" ]; then
    if [ ! -e installed ]; then
        newest=$(command -v python3.13 || command -v python3.12 || command -v python3.11)
        aws s3 cp --only-show-errors --region {region} \\
            ${endpoint:+--endpoint-url "$endpoint"} "$software" .
        "$newest" -m venv --clear environment || {
            apt-get -o DPkg::Lock::Timeout=300 update
            apt-get -o DPkg::Lock::Timeout=300 install -y "${newest##*/}-venv"
            "$newest" -m venv --clear environment
        }
        environment/bin/pip install --quiet --no-compile "./${software##*/}[server,s3,docker]"
        touch installed
    fi
    python=environment/bin/python
fi
exec "$python" -m eva.worker --bootstrap-file bootstrap --state /var/lib/eva-worker \\
    ${capacity:+--capacity "$capacity"} --address "$(hostname -I | cut -d' ' -f1)" \\
    --lease /run/eva-worker.lease --poweroff
END
chmod 755 worker

cat > /etc/systemd/system/eva-worker.service <<'END'
[Unit]
Description=The worker of Eva
Wants=network-online.target
After=network-online.target docker.service
StartLimitIntervalSec=3600
StartLimitBurst=100
StartLimitAction=poweroff

[Service]
ExecStart=/var/lib/eva/worker
ExecStopPost=/bin/sh -c 'if [ "$$EXIT_STATUS" = 3 ]; then systemctl poweroff; fi'
Environment=HOME=/root
KillMode=process
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=3
SuccessExitStatus=143

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable eva-worker
systemctl start --no-block eva-worker
"""


def filled(script: str, words: Mapping[str, str]) -> str:
    """Each `{name}` of a known word becomes that word, quoted for a shell; all else stays."""
    names = "|".join(map(re.escape, words))
    return re.sub(f"{{({names})}}", lambda found: shlex.quote(words[found[1]]), script)
