"""What a queue is to do, in plain Python: one dictionary of jobs, and every call written out over it."""

from __future__ import annotations

from dataclasses import dataclass, field

BACKOFF = 1000  # ms


@dataclass
class ModelJob:
    number: int
    place: str
    created: int
    priority: int = 5
    unique: str = ""
    gave_up_key: bool = False
    attempts: int = 3
    timeout: int = 0
    lease: int = 30_000
    due: int = 0
    instance: str = ""
    attempt: int = 0
    token: str = ""
    until: int = 0
    deadline: int = 0

    @property
    def id(self) -> str:
        return f"0-{self.number}"

    @property
    def rank(self) -> tuple[int, int]:
        return -self.priority, self.number


@dataclass
class ModelInstance:
    state: str = "Idle"
    entered: int = 0
    job: str = ""


@dataclass
class Model:
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    instances: dict[str, ModelInstance] = field(default_factory=dict)
    numbered: int = 0
    paused: bool = False
    concurrency: int = 0
    counted: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ["enqueued", "taken", "completed", "failed", "lost", "died", "withdrawn", "purged"], 0
        )
    )

    def within(self, place: str) -> list[ModelJob]:
        """In the order of the place."""
        keys = {
            "ready": lambda j: j.rank,
            "leased": lambda j: (j.until, j.id),
            "delayed": lambda j: (j.due, j.id),
            "dead": lambda j: (j.due, j.id),
        }
        return sorted((job for job in self.jobs.values() if job.place == place), key=keys[place])

    def holder(self, unique: str) -> ModelJob | None:
        holders = (job for job in self.jobs.values() if unique and job.unique == unique and not job.gave_up_key)
        return next((job for job in holders if job.place != "dead"), None)

    # Coming

    def enqueue(self, now: int, *, delay: int = 0, debounce: int = 0, **facts) -> ModelJob:
        held = self.holder(facts.get("unique", ""))
        if held and not debounce:
            return held
        if held and held.place != "leased" and not held.attempt and not held.instance:
            vars(held).update(facts, place="delayed", due=now + debounce)
            return held
        if held:
            held.gave_up_key = True
        delay = delay or debounce
        self.numbered += 1
        self.counted["enqueued"] += 1
        job = ModelJob(self.numbered, "delayed" if delay else "ready", now, due=now + delay, **facts)
        self.jobs[job.id] = job
        return job

    def start(self, id: str, now: int) -> None:
        job = self.enqueue(now, instance=id, attempts=2)
        self.instances[id] = ModelInstance("Busy", now, job.id)

    # Working

    def wake(self, now: int) -> int:
        due = [job for job in self.within("delayed") if job.due <= now]
        for job in due:
            job.place = "ready"
        return len(due)

    def take(self, now: int, count: int, lease: int | None) -> list[ModelJob]:
        self.wake(now)
        free = self.concurrency - len(self.within("leased")) if self.concurrency else count
        taken = [] if self.paused else self.within("ready")[: max(0, min(count, free))]
        for job in taken:
            job.place, job.attempt = "leased", job.attempt + 1
            job.deadline = now + job.timeout if job.timeout else 0
            job.until = now + (lease or job.lease)
            job.until = min(job.until, job.deadline) if job.deadline else job.until
        self.counted["taken"] += len(taken)
        return taken

    def leave(self, job: ModelJob, state: str, now: int) -> None:
        """The instance that waits for the job goes to a state."""
        instance = self.instances.get(job.instance)
        if instance and instance.job == job.id:
            self.instances[job.instance] = ModelInstance(state, now)

    def complete(self, job: ModelJob, now: int) -> None:
        self.counted["completed"] += 1
        self.leave(job, "Done", now)
        del self.jobs[job.id]

    def forget(self, job: ModelJob) -> None:
        """The instance hears that nothing will come, and nobody listens: it stays."""
        instance = self.instances.get(job.instance)
        if instance and instance.job == job.id:
            instance.job = ""

    def bury(self, job: ModelJob, now: int) -> None:
        job.place, job.due, job.token = "dead", now, ""
        self.counted["died"] += 1
        self.forget(job)

    def fail(self, job: ModelJob, now: int, retry: bool) -> str:
        self.counted["failed"] += 1
        if not retry or job.attempt >= job.attempts:
            self.bury(job, now)
        else:
            job.place, job.due, job.token = "delayed", now + BACKOFF * 2 ** (job.attempt - 1), ""
        return job.place

    def hand_back(self, job: ModelJob, now: int, delay: int) -> None:
        job.place, job.due, job.token = "delayed" if delay else "ready", now + delay, ""
        job.attempt -= 1

    def sweep(self, now: int, leeway: int = 0) -> int:
        expired = [job for job in self.within("leased") if job.until + leeway <= now]
        for job in expired:
            self.counted["lost"] += 1
            if job.attempt < job.attempts:
                job.place, job.token = "ready", ""
            else:
                self.bury(job, now)
        return len(expired) + self.wake(now)

    # Operating

    def remove(self, job: ModelJob, why: str) -> None:
        self.counted[why] += 1
        self.forget(job)
        del self.jobs[job.id]

    def abandon(self, id: str, now: int) -> None:
        job = self.jobs.get(self.instances[id].job)
        if job:
            self.remove(job, "withdrawn")
        for dead in self.within("dead"):  # nobody waits for them any more
            dead.place = "handled" if dead.instance == id else dead.place
        self.instances[id] = ModelInstance("Idle", now)

    def redrive(self) -> int:
        moved = 0
        for job in self.within("dead"):
            if self.holder(job.unique):
                continue
            job.place, job.attempt, job.gave_up_key = "ready", 0, False
            instance = self.instances.get(job.instance)
            if instance and (instance.state, instance.entered, instance.job) == ("Busy", job.created, ""):
                instance.job = job.id
            moved += 1
        return moved

    def move_now(self) -> int:
        delayed = self.within("delayed")
        for job in delayed:
            job.place = "ready"
        return len(delayed)
