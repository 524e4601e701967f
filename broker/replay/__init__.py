"""Recorded runs, replayed through real workers and approvers: does each end as it did, with each tool run once?"""

from .main import Progress, Replay, replay, run
from .options import Options
from .report import Report

__all__ = ["Options", "Progress", "Replay", "Report", "replay", "run"]
