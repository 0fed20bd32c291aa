"""The faults: what is wrong, where, and the tests that stand beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LUA = "machines/engine/lua/"


@dataclass(frozen=True, slots=True)
class Fault:
    """``old`` stands once in ``file``. ``tests``: folders or files; ``slow``: a slow kind that is tried as well."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    slow: str = ""

    def fits(self, root: Path) -> bool:
        return (root / self.file).read_text(encoding="utf-8").count(self.old) == 1


TAKEN_BACK = ("tests/engine/connection/test_foreign_keys.py",)
FAULTS = (
    # the library
    Fault(
        "history keeps its oldest entries",
        LUA + "instances/step_plan.lua",
        "${-step.program.history}, -1)",
        "0, ${step.program.history - 1})",
        ("tests/engine/instances/test_history.py",),
    ),
    Fault(
        "a failed step leaves a counter of flow at 0",
        LUA + "instances/step_plan.lua",
        "flow, -1) == 0 then",
        "flow, -1) < 0 then",
        TAKEN_BACK,
    ),
    Fault(
        "a failed step moves the time of entry",
        LUA + "instances/step_plan.lua",
        "find_index(step, step.origin), progress.entered, id)",
        "find_index(step, step.origin), 1, id)",
        TAKEN_BACK,
    ),
    Fault(
        "a backoff of more than an hour is cut",
        LUA + "functions/jobs/sb_fail.lua",
        "math.max(MAX_BACKOFF, backoff)",
        "MAX_BACKOFF",
        ("tests/engine/jobs/test_leases.py",),
    ),
    Fault(
        "the first retry waits twice as long",
        LUA + "functions/jobs/sb_fail.lua",
        "(tonumber(row.attempt) - 1)",
        "tonumber(row.attempt)",
        ("tests/engine/jobs/test_leases.py",),
    ),
    Fault(
        "cancelling '' cancels every unnamed event",
        LUA + "timers/timers.lua",
        "timer[SENDID] ~= sendid or sendid == ''",
        "timer[SENDID] ~= sendid",
        ("tests/engine/messages/test_timers.py",),
    ),
    Fault(
        "a timer armed while suspended loses its start",
        LUA + "timers/timers.lua",
        "if ctx.raw._suspended then timer[SINCE] = ctx.now end",
        "",
        ("tests/engine/instances/test_suspend.py",),
    ),
    Fault(
        "an instance may have one timer more",
        LUA + "timers/timers.lua",
        "if #all >= MAX_TIMERS then",
        "if #all > MAX_TIMERS then",
        ("tests/engine/messages/test_timers_late.py",),
    ),
    Fault(
        "a finished job stays awaited beside others",
        LUA + "instances/step_jobs.lua",
        "if other ~= job then others[#others + 1] = other end",
        "others[#others + 1] = other",
        ("tests/engine/jobs/test_jobs.py", "tests/engine/interpreter/charts/test_semantics.py"),
    ),
    Fault(
        "a dead job is awaited again after the state was entered anew",
        LUA + "jobs/completion.lua",
        "ctx.state ~= state or tonumber(ctx.raw._entered) ~= tonumber(row.created)",
        "ctx.state ~= state",
        ("tests/engine/jobs/test_handled.py",),
    ),
    Fault(
        "a step that stays counts as having left",
        LUA + "jobs/completion.lua",
        "if not ctx.chart then return ctx.moved end",
        "if not ctx.chart then return true end",
        ("tests/engine/jobs/test_handled.py",),
    ),
    Fault(
        "a lease outlives the deadline of its job",
        LUA + "functions/jobs/sb_take.lua",
        "lease_end = math.min(lease_end, now + timeout)",
        "lease_end = now + math.max(timeout, lease_end - now)",
        ("tests/engine/jobs/test_queue_attempts.py",),
    ),
    Fault(
        "a second attempt forgets when the first began",
        LUA + "functions/jobs/sb_take.lua",
        "if row.taken and not row.started then",
        "if row.taken and row.started then",
        ("tests/engine/jobs/test_queue_attempts.py",),
    ),
    Fault(
        "a renewal passes the deadline",
        LUA + "functions/jobs/sb_extend.lua",
        "math.min(now + lease, tonumber(row.deadline or now + lease))",
        "now + lease",
        ("tests/engine/jobs/test_queue_attempts.py",),
    ),
    Fault(
        "an approval of `door` does not cover `door.open`",
        LUA + "interpreter/permits.lua",
        "if event == listed or string.sub(event, 1, #listed + 1) == listed .. '.' then",
        "if event == listed then",
        ("tests/engine/instances/test_permits.py",),
    ),
    Fault(
        "an approval holds for another version",
        LUA + "interpreter/permits.lua",
        "permit.definition ~= tonumber(ctx.program.version)",
        "false",
        ("tests/engine/instances/test_permits.py",),
    ),
    Fault(
        "who asked is the second person",
        LUA + "interpreter/permits.lua",
        "if permit.by and permit.by == actor then",
        "if permit.by and permit.by == '' then",
        ("tests/engine/instances/test_permits.py", "tests/approvals/test_approvals.py"),
    ),
    Fault(
        "reenter does not leave the state",
        LUA + "interpreter/configurations.lua",
        "if not transition.reenter then",
        "if true then",
        ("tests/engine/instances/test_fire.py", "tests/engine/interpreter/charts/test_semantics.py"),
    ),
    Fault(
        "internal events are taken last first",
        LUA + "interpreter/chart.lua",
        "table.remove(ctx.internal, 1)",
        "table.remove(ctx.internal)",
        (
            "tests/engine/instances/test_fire.py",
            "tests/engine/interpreter/test_properties.py",
            "tests/engine/interpreter/charts/test_semantics.py",
        ),
    ),
    Fault(
        "shares of a limit add up to more than the whole",
        LUA + "jobs/queue_limits.lua",
        "number < whole % partitions",
        "number <= whole % partitions",
        ("tests/engine/jobs/test_queue_limits.py",),
    ),
    Fault(
        "a clock that was set back stops a queue with a rate",
        LUA + "jobs/queue_limits.lua",
        "if rules.tat > now + ahead + max(rules.interval, SKEW_MS) then return now end",
        "",
        ("tests/engine/jobs/test_queue_limits.py",),
    ),
    Fault(
        "a key answers for an instance created anew",
        LUA + "base/idempotency.lua",
        "if created and created ~= json.number",
        "if created and false and created ~= json.number",
        ("tests/engine/instances/test_idempotency.py",),
    ),
    Fault(
        "> finds what is equal",
        LUA + "search/filters.lua",
        "condition.gt and not is_before(condition.gt, value)",
        "condition.gt and is_before(value, condition.gt)",
        ("tests/engine/search/test_find_filter.py",),
    ),
    Fault(
        "a suspended instance holds one message more",
        LUA + "messages/delivery.lua",
        ">= MAX_HELD then",
        "> MAX_HELD then",
        (
            "tests/engine/messages/test_delivery.py",
            "tests/engine/instances/test_suspend.py",
            "tests/engine/interpreter/test_bounds.py",
        ),
    ),
    Fault(
        "an event of a replaced child counts",
        LUA + "messages/delivery.lua",
        "return child.id ~= from.id or child.machine ~= from.machine",
        "return false",
        ("tests/engine/messages/test_delivery.py", "tests/engine/interpreter/test_invoke_machine.py"),
    ),
    Fault(
        "a transition of the outer state comes first",
        LUA + "interpreter/configurations.lua",
        "do list[#list + 1] = transition end",
        "do table.insert(list, 1, transition) end",
        ("tests/engine/interpreter/charts/test_semantics.py",),
    ),
    Fault(
        "two top states at once are a legal configuration",
        LUA + "interpreter/configurations.lua",
        "return top == 1",
        "return top >= 1",
        (
            "tests/engine/interpreter/charts/test_semantics.py",
            "tests/engine/instances/test_force.py",
            "tests/engine/instances/test_repairs.py",
        ),
    ),
    # services and what they stand on
    Fault(
        "requests that expired can be approved",
        "machines/approvals/actions.py",
        "State.OPEN, expires_at__lte=now)",
        "State.OPEN, expires_at__lt=now.replace(year=2000))",
        ("tests/approvals/test_approvals.py",),
    ),
    Fault(
        "a person decides a request of their own",
        "machines/approvals/actions.py",
        "    if approval.asker_id == actor.id:\n        raise OwnRequest",
        "    if not approval.asker_id:\n        raise OwnRequest",
        ("tests/approvals/test_approvals.py",),
    ),
    Fault(
        "a token of smaller reach withdraws",
        "machines/approvals/queries.py",
        "return approval.asker_id == actor.id and reaches",
        "return approval.asker_id == actor.id",
        ("tests/approvals/test_approvals.py",),
    ),
    Fault(
        "a token of a deactivated owner opens doors",
        "machines/people/tokens.py",
        "if not token.owner.is_active:",
        "if token.owner is None:",
        ("tests/people", "tests/api/test_sessions.py", "tests/api/test_operations.py"),
    ),
    Fault(
        "a revoked token may be revoked again",
        "machines/people/tokens.py",
        "filter(pk=token.pk, revoked=None)",
        "filter(pk=token.pk)",
        ("tests/people", "tests/api/test_token_pages.py"),
    ),
    Fault(
        "a token without machines covers one right too many",
        "machines/people/tokens.py",
        "return right in self.rights and (machine",
        "return (machine",
        ("tests/people", "tests/api/test_token_pages.py", "tests/api/test_operations.py"),
    ),
    Fault(
        "a webhook may lead inside when one of its addresses is public",
        "machines/webhooks/addresses.py",
        "if not all(may_lead_to(host, address) for address in addresses):",
        "if not any(may_lead_to(host, address) for address in addresses):",
        ("tests/webhooks/test_addresses.py",),
    ),
    Fault(
        "an address of NAT64 hides an inner one",
        "machines/webhooks/public_addresses.py",
        "if address in NAT64:",
        "if address not in NAT64 and False:",
        ("tests/webhooks/test_addresses.py",),
    ),
    Fault(
        "a backfill runs its end, too",
        "machines/schedules/planning.py",
        'if at < request["to"]]',
        'if at <= request["to"]]',
        ("tests/schedules/test_services.py", "tests/schedules/test_policies.py"),
    ),
    Fault(
        "catch-up keeps the oldest",
        "machines/schedules/planning.py",
        "list(missed)[-kept:] if kept else []",
        "list(missed)[:kept]",
        ("tests/schedules/test_policies.py",),
    ),
    Fault(
        "an interval repeats its last occurrence",
        "machines/schedules/occurrences.py",
        "// self.seconds + 1) * self.seconds",
        "// self.seconds) * self.seconds",
        ("tests/schedules/test_zones.py", "tests/schedules/test_policies.py"),
    ),
    Fault(
        "a machine of the product takes the default retention",
        "machines/retention/duty.py",
        "if machine in builtin_machines.NAMES else",
        "if machine not in builtin_machines.NAMES else",
        ("tests/retention/test_duty.py", "tests/retention/test_policy.py"),
    ),
    Fault(
        "the log of a partition is cut at half of its age",
        "machines/retention/duty.py",
        "max(0, now - bounds.retention.log)",
        "max(0, now - bounds.retention.log // 2)",
        ("tests/retention/test_duty.py",),
    ),
    # live view
    Fault(
        "a delta leaves out what went away",
        "dashboard/live/hub/feeds.py",
        "{key: None for key in old if key not in new}",
        "{}",
        ("tests/live/hub/test_merge_patch.py",),
    ),
    Fault(
        "true and 1 are the same value",
        "dashboard/live/hub/feeds.py",
        "return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)",
        "return bool(left == right)",
        ("tests/live/hub/test_merge_patch.py",),
    ),
    Fault(
        "a page of another port opens a socket",
        "dashboard/live/sockets/admission.py",
        "(origin_domain, origin_port or DEFAULT_PORTS[origin_scheme]) == (",
        "(origin_domain, port or DEFAULT_PORTS[origin_scheme]) == (",
        ("tests/installation/settings/test_origin.py",),
    ),
    Fault(
        "commands of a socket are never refilled",
        "dashboard/live/sockets/admission.py",
        "self._left + (now - self._seen) * self._refill",
        "self._left",
        ("tests/live/connections/test_rate_limit.py",),
    ),
    Fault(
        "a second delta before the first is sent loses it",
        "dashboard/live/outbox.py",
        "None if topic in self._pending else frame",
        "frame",
        ("tests/live/connections/test_outbox.py",),
    ),
    Fault(
        "a muted socket is told that all is well",
        "dashboard/live/outbox.py",
        "if self._status is not None and not (self._muted and self._status_is_good):",
        "if self._status is not None:",
        ("tests/live/connections/test_outbox.py",),
    ),
    Fault(
        "the last watcher leaves its topic behind",
        "dashboard/live/hub/feeds.py",
        "        if not feed.watchers:\n            del self._feeds[topic]",
        "        if not self._feeds:\n            del self._feeds[topic]",
        ("tests/live/hub/test_feeds.py",),
    ),
    Fault(
        "a gap in the numbers goes unseen",
        "static/signalbox/js/live/store.js",
        "frame.seq !== meta.seq + 1",
        "frame.seq <= meta.seq",
        ("tests/live/test_javascript.py", "tests/live/test_browser.py"),
        slow="browser",
    ),
    Fault(
        "a socket that was closed for good opens again",
        "static/signalbox/js/live/socket.js",
        "if (FINAL[code]) return this.#host.close(FINAL[code]);",
        "",
        ("tests/live/test_javascript.py", "tests/live/test_browser.py"),
        slow="browser",
    ),
    Fault(
        "values are not kept back while the page is frozen",
        "static/signalbox/js/live/store.js",
        "this.#hidden || this.#calm || this.#frozen) {",
        "this.#hidden || this.#calm) {",
        ("tests/live/test_javascript.py", "tests/live/test_browser.py"),
        slow="browser",
    ),
    # worker
    Fault(
        "a job leased to another worker is handed back",
        "machines/worker/intake/poll_loop.py",
        "job.worker != self._worker or self._holds",
        "self._holds",
        ("tests/worker/intake/test_reclaim.py",),
    ),
    Fault(
        "a deadline strikes after the lease",
        "machines/worker/execution/executor.py",
        "(ends - lead, next",
        "(ends + lead, next",
        ("tests/worker/execution/test_deadlines.py",),
    ),
    Fault(
        "one result that cannot be sent costs all of its batch",
        "machines/worker/execution/completer.py",
        "if len(done) > 1:",
        "if len(done) > 100_000:",
        ("tests/worker/execution/test_completer.py",),
    ),
    Fault(
        "a worker that is quiet never rests",
        "machines/worker/intake/poll_loop.py",
        "if not self._taking.is_set():\n            self._fetcher.pass_on()",
        "if False:\n            self._fetcher.pass_on()",
        ("tests/worker/test_orders.py",),
    ),
    Fault(
        "partitions of a worker that leaves are not given up",
        "machines/worker/duties/due_work.py",
        "            self._engine.wakeups.leave(self._worker)",
        "            pass",
        ("tests/worker/test_sharing.py", "tests/worker/maintenance"),
    ),
    Fault(
        "an order is obeyed each time it is read",
        "machines/worker/lease_renewal.py",
        "if order is not None and order != self._obeyed:",
        "if order is not None:",
        ("tests/worker/test_orders.py", "tests/worker/test_lease_renewal.py"),
    ),
)
