"""`python -m eva.adapters.local FOLDER`: be the machine of one instance."""

import sys

from eva.adapters.local.host import main

if __name__ == "__main__":
    main(sys.argv[1])
