"""The clock of a test, by the name that the tests import it by."""

from broker.testing import MOVABLE, Clock

__all__ = ["MOVABLE", "Clock"]
