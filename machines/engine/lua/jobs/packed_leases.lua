-- The token of a leased job as it is stored.
local packed_leases = {}

-- The last letter of the token of a plain job: one that was never taken, without a unique key, a group or a batch. Any other
-- ends with a '-'.
packed_leases.PLAIN = string.byte('+')

-- The token of a plain job is stored with when and by whom it was taken, between spaces: one field in place of four. Other
-- jobs, and those that were taken before this was so, have a field for each.
local PACKED = '^(%S+) (%S+) (.*)$'

-- Answers how the lease of a plain job is stored in its token.
function packed_leases.pack(token, taken, worker)
    return token .. ' ' .. taken .. ' ' .. worker
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
