"""`python -m eva.worker`."""

import sys

from eva.worker.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
