"""Publish the dataset as a release folder, verify such a folder, and compare two of them.

from ipu_results.release import ReleaseRequest, diff_releases, publish, verify_release

published = publish(ReleaseRequest(Path("warehouse"), Path("release"), date.today()))
problems = verify_release(Path("release"))  # empty if the release is sound
diff = diff_releases(Path("release-1.0.0"), Path("release"))
"""

from ipu_results.release.decision import ReleaseDecision, ReleaseRequest
from ipu_results.release.diff import ChangeCounts, ReleaseDiff, TableDiff, diff_releases
from ipu_results.release.problems import Problem
from ipu_results.release.publishing import PublishedRelease, publish
from ipu_results.release.verify import list_limitations, verify_release

__all__ = [
    "ChangeCounts",
    "Problem",
    "PublishedRelease",
    "ReleaseDecision",
    "ReleaseDiff",
    "ReleaseRequest",
    "TableDiff",
    "diff_releases",
    "list_limitations",
    "publish",
    "verify_release",
]
