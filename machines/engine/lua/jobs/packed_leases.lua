-- The token of a leased job as it is stored.
local packed_leases = {}

-- The last letter of the token of a plain job: one that was never taken, without a unique key, a group or a batch. Any other
-- ends with a '-'.
packed_leases.PLAIN = string.byte('+')

-- The token of a plain job is stored with when and by whom it was taken, between spaces: one field in place of four. Other
-- jobs, and those that were taken before this was so, have a field for each.
local PACKED = '^(%S+) (%S+) (.*)$'

-- The leases of plain jobs that were taken last, by token: the end of such a job reads its token alone. Lost when the server
-- restarts: the end then reads the job.
local MAX_REMEMBERED = 2000 -- jobs before those of the leases before are forgotten
local leases, leases_before, remembered_count = {}, {}, 0

-- Answers how the lease of a plain job is stored in its token.
function packed_leases.pack(token, taken, worker)
    return token .. ' ' .. taken .. ' ' .. worker
end

-- Remembers `count` jobs that are leased with the token of plain ones. `lease`: `root`; `packed`, the token as it is stored;
-- `row`, what plain jobs of one invoke have in common; `flats`, by job what HGETALL answered for each, empty without an
-- instance. What changes the instance or the invoke of a leased job, or when it was created, spreads its lease.
function packed_leases.remember(lease, count)
    if remembered_count >= MAX_REMEMBERED then leases_before, leases, remembered_count = leases, {}, 0 end
    leases[lease.row.token], remembered_count = lease, remembered_count + count
end

-- Finds the lease of a token; nil where it is not remembered.
function packed_leases.find(root, token)
    local lease = leases[token] or leases_before[token]
    return lease and lease.root == root and lease or nil
end

-- Answers the token without what is stored with it.
function packed_leases.get_token(stored)
    return string.match(stored or '', '^%S*')
end

-- Unpacks a lease that is stored in the token of a row. Answers the row.
function packed_leases.unpack(row)
    local token, taken, worker = string.match(row.token or '', PACKED)
    if token then row.token, row.attempt, row.taken, row.worker = token, '1', taken, worker end
    return row
end

-- The same for a flat list of fields and values.
function packed_leases.unpack_fields(flat)
    for i = 1, #flat, 2 do
        local row = flat[i] == 'token' and packed_leases.unpack({ token = flat[i + 1] })
        if row and row.taken then
            flat[i + 1] = row.token
            for _, name in ipairs({ 'attempt', 'taken', 'worker' }) do flat[#flat + 1], flat[#flat + 2] = name, row[name] end
        end
    end
    return flat
end

return packed_leases
