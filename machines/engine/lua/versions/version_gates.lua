-- needs: keys
-- What forbids a move: an instance or its version that is pinned, a version that was withdrawn. Read once for each call.
local version_gates = {}

-- Reads the gates of a partition: the definition that the machine is pinned to, and the withdrawn ones.
function version_gates.read(root)
    local row = redis.call('HMGET', keys.meta(root), 'pin', 'withdrawn')
    local ok, pin = pcall(cjson.decode, row[1] or 'null')
    return { pinned = ok and type(pin) == 'table' and pin.def or nil, withdrawn = row[2] or '' }
end

-- Answers the code and the reason why an instance may not move; nil when it may.
function version_gates.check(gates, raw, to)
    if raw._pin then return 'SB631', 'it is pinned to its version' end
    if gates.pinned and gates.pinned == raw._def then
        return 'SB631', 'version ' .. string.match(raw._def, '^%d*') .. ' is pinned: no plan moves its instances'
    end
    if string.find(gates.withdrawn, '"' .. to .. '"', 1, true) then
        return 'SB612', 'version ' .. string.match(to, '^%d*') .. ' is withdrawn: no instance gets it'
    end
    return nil
end

return version_gates
