"""Old failures go, and groups with open jobs stay."""

from machines.jobs.failures import actions as failures
from machines.jobs.failures import duties
from machines.jobs.failures.duties import PacedActions
from machines.models import FailedJob, FailureAction, FailureGroup, FailureHour

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


def test_an_action_that_ended_keeps_no_list_and_goes_in_time(die, follow, actor, engine):
    die("a", "b", "c")
    follow()
    done = failures.redrive(actor("ann", "view", "operate"), only_group().pk, reason="fixed")
    PacedActions(engine).look(done.started + 1000)
    done.refresh_from_db()
    assert (done.state, done.jobs, done.total) == ("done", [], 3)
    running = FailureAction.objects.create(
        action="withdraw", actor="ann", reason="x", rate=1, jobs=["1 1"], started=done.started, updated=done.updated
    )
    FailureAction.objects.filter(pk=done.pk).update(group=None)
    duties.prune(done.updated + duties.KEEP)
    assert FailureAction.objects.count() == 2
    duties.prune(done.updated + duties.KEEP + 1)
    assert list(FailureAction.objects.all()) == [running]
