"""Old failures go, and groups with open jobs stay."""

from machines.failures import duties
from machines.models import FailedJob, FailureGroup, FailureHour

from .conftest import only_group


def test_what_is_older_than_it_is_kept_goes_when_no_job_is_open(die, follow):
    die("a")
    follow()
    died = FailedJob.objects.get().died
    duties.prune(died + 2 * duties.KEEP)
    assert only_group().jobs.count() == 1
    FailedJob.objects.update(open=False)
    duties.prune(died + duties.KEEP)
    assert only_group().jobs.count() == 1
    duties.prune(died + duties.KEEP + 1)
    assert not FailedJob.objects.exists()
    assert not FailureGroup.objects.exists()
    assert not FailureHour.objects.exists()
