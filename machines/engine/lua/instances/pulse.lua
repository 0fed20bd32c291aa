-- needs: due_times, keys
-- The pulse of a partition tells subscribers that something has changed there, and `touched` of its meta hash since when.
local pulse = {}

local call = redis.call

local PULSE_MS = 50

local last_pulses, pulse_count = {}, 0
local last_touches, touch_count = {}, 0
local touches_since -- ms: changes before are not known

-- Answers the server's time in ms.
function pulse.read_clock()
    local time = call('TIME')
    return time[1] * 1000 + time[2] / 1000
end

-- Notes that figures of the partition changed, at most once in 50 ms: a reader of many partitions finds by it which ones to
-- read again. `now` is the server's time in ms where the caller has read it.
function pulse.touch(root, now)
    now = now or pulse.read_clock()
    local last = last_touches[root]
    if last and now - last < PULSE_MS and now >= last then return end
    if not last then
        if touch_count > 10000 then last_touches, touch_count, touches_since = {}, 0, nil end
        touch_count = touch_count + 1
    end
    touches_since = touches_since or now
    last_touches[root] = now
    redis.pcall('HSET', keys.meta(root), 'touched', string.format('%d', now))
end

-- Tells whether changes since `since` ms are all remembered.
function pulse.remembers(since, now)
    touches_since = touches_since or now
    return since >= touches_since
end

-- Tells, from memory, whether figures of the partition may have changed since `since` ms.
function pulse.was_touched(root, since)
    local last = last_touches[root]
    return last ~= nil and last >= since - PULSE_MS
end

-- Iterates the roots of partitions that are remembered.
function pulse.iterate() return pairs(last_touches) end

-- Rings the pulse, at most once in 50 ms for a partition: until then the key still exists, so it is not tried. `now` is the
-- server's time in ms where the caller has read it.
function pulse.ring(root, now)
    due_times.ring_bell(root)
    now = now or pulse.read_clock()
    local last = last_pulses[root]
    if last and now - last < PULSE_MS and now >= last then return end
    if not last then
        if pulse_count > 10000 then last_pulses, pulse_count = {}, 0 end
        pulse_count = pulse_count + 1
    end
    -- A pulse counts only if the key was set: a key that lives to the end of its last millisecond must not silence the next
    -- 50 ms. The step is already written, so a pulse that cannot be set does not fail it.
    local reply = redis.pcall('SET', keys.pulse(root), 1, 'NX', 'PX', PULSE_MS)
    if reply and reply.ok then last_pulses[root] = now end
    pulse.touch(root, now)
end

return pulse
