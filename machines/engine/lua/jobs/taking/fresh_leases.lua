-- Remembers the jobs of the latest takes, so that their completion reads little of them again: while a token holds a job, no
-- field changes that a completion needs, except `invoke`. Lost when the server restarts.
local fresh_leases = {}

local MOST = 5000 -- jobs; all are forgotten beyond
local MIN_TOKEN = 14 -- bytes: the engine's tokens are random, and those of others may come again

local leases, count = {}, 0 -- token -> what its jobs have in common, and the jobs

-- Opens the lease of the jobs that a call takes with one token.
function fresh_leases.open(root, token, worker, taken)
    if #token < MIN_TOKEN then return nil end
    return { root = root, token = token, worker = worker, taken = taken, jobs = {} }
end

-- Adds a job that an instance waits for, and that has no other field than each such job. `flat`: its hash before the take.
function fresh_leases.add(lease, job, flat)
    if count >= MOST then leases, count = {}, 0 end
    leases[lease.token], lease.jobs[job], count = lease, flat, count + 1
end

-- Answers the lease of a token and the hash of the job, as `add` got it, and forgets the job; nil when it is not remembered.
function fresh_leases.remove(root, job, token)
    local lease = leases[token]
    local flat = lease and lease.root == root and lease.jobs[job]
    if not flat then return nil end
    lease.jobs[job], count = nil, count - 1
    if not next(lease.jobs) then leases[token] = nil end
    return lease, flat
end

return fresh_leases
