#!/usr/bin/python3
"""nova-compute, unchanged. Debian's package nova-compute would bring a libvirtd of the system; the
program itself is in python3-nova."""
import sys

# First of all: it makes Python's threads what this release of Nova wants them to be.
from nova.cmd.compute import main

if __name__ == '__main__':
    sys.argv[0] = 'nova-compute'
    sys.exit(main())
