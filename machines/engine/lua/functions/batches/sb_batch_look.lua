-- needs: arguments, job_batches, replies
-- sb_batch_look: reads a batch.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 batch · 2 a job that names it: the batch is found only if that job belongs to it, not to an earlier one of the
--          same id; '' for none
-- Returns: {OK, the figures of sb_batch} · {GONE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    arguments.need(ARGV[1], 'the batch is missing')
    local batch, job = job_batches.read(KEYS[1], ARGV[1]), ARGV[2] or ''
    if not batch or job ~= '' and not job_batches.has_job(batch, job) then return { replies.GONE } end
    return { replies.OK, unpack(job_batches.list(batch)) }
end
