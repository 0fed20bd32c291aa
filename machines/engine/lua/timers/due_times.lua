-- needs: keys
-- Remembers for each partition when something is due next, as far as this server knows: a timer, the end of a lease, a
-- delayed job, a check of undelivered messages. A tick of a partition where nothing is due yet reads no key, and a step
-- wakes a ticking worker only for something earlier than the worker expects. The memory is lost when the library is loaded
-- or the server restarts; then a tick reads the keys. A remembered time may be too early (its timer was disarmed, its step
-- failed), never too late.
local due_times = {}

local HORIZON_MS = 5000 -- workers tick at least this often: what is due later rings no bell
local MAIL_MS = 250 -- the process that posted a message delivers it at once; after this time a tick does
local MAX_BELL = 1
local MAX_PARTITIONS = 10000

-- `due`: nothing is due before it; `is_complete`: a tick has read the keys, so nothing else is due; `last_tick`: in ms;
-- `has_messages`: messages were posted since the latest check; `bell_pending`: the bell has to ring at the end of the call;
-- `before`: `due` at the start of the latest check; `list`: the latest ticking worker waits on the bell list, not the channel.
local entries, entry_count, pending_bells = {}, 0, 0
local memory, losses = nil, 0 -- the name of this memory; how often it forgot partitions

local function add_entry(root)
    if entry_count >= MAX_PARTITIONS then entries, entry_count, pending_bells, losses = {}, 0, 0, losses + 1 end
    local entry = { due = math.huge, is_complete = false, last_tick = 0, has_messages = false, bell_pending = false,
        list = false }
    entries[root], entry_count = entry, entry_count + 1
    return entry
end

local function clear_bell(entry)
    if entry.bell_pending then entry.bell_pending, pending_bells = false, pending_bells - 1 end
end

local function request_bell(entry, due, now)
    if due - now <= HORIZON_MS and not entry.bell_pending then entry.bell_pending, pending_bells = true, pending_bells + 1 end
end

-- Notes that something is due at `due` ms.
function due_times.note(root, due, now)
    local entry = entries[root] or add_entry(root)
    if due >= entry.due then return end
    entry.due = due
    request_bell(entry, due, now)
end

-- Notes that messages were posted, by the server's own clock, whatever time the caller gave the step.
function due_times.note_messages(root)
    local entry = entries[root] or add_entry(root)
    if entry.has_messages then return end
    entry.has_messages = true
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    due_times.note(root, now + MAIL_MS, now)
end

-- Wakes the ticking worker if something earlier than it expects was noted: publishes when it is due. Called at the end of a
-- call, because a step that fails must leave no key behind. A bell that cannot ring does not fail the call.
function due_times.ring_bell(root)
    if pending_bells == 0 then return end
    local entry = entries[root]
    if not entry or not entry.bell_pending then return end
    clear_bell(entry)
    redis.pcall('SPUBLISH', keys.bells(root), string.format('due %.0f', math.max(entry.due, 0)))
    if not entry.list then return end
    local bell = keys.clock(root)
    local length = redis.pcall('LPUSH', bell, '1')
    if type(length) == 'number' and length > MAX_BELL then redis.call('LTRIM', bell, 0, MAX_BELL - 1) end
end

-- Notes whether the worker that ticks now hears the channel; if not, it waits on the bell list.
function due_times.note_listener(root, hears)
    local entry = entries[root]
    if entry then entry.list = not hears end
end

-- Describes a partition to a waiting worker: nil when nothing is due by `now + horizon`, else the ms of what is due next, ''
-- when the keys must be read.
function due_times.describe(root, now, horizon)
    local entry = entries[root]
    if not entry or not entry.is_complete or now < entry.last_tick then return '' end
    return entry.due <= now + horizon and string.format('%.0f', entry.due) or nil
end

-- Answers the ms of what is due next (math.huge for nothing) if nothing is due now; nil when the keys must be read. A clock
-- that was set back makes the memory void.
function due_times.find_next(root, now)
    local entry = entries[root]
    if not entry or not entry.is_complete or now < entry.last_tick or now >= entry.due then return nil end
    entry.last_tick = now
    return entry.due
end

-- Begins a check of the keys: it will find whatever is noted from here on.
function due_times.begin_check(root)
    local entry = entries[root] or add_entry(root)
    if entry.due > -math.huge then entry.before = entry.due end
    entry.due, entry.is_complete, entry.has_messages = -math.huge, false, false
end

-- Ends a check: `due` is next, and `mail` tells whether messages wait. Answers when to check again. Rings the bell if that
-- is earlier than workers may expect.
function due_times.end_check(root, due, mail, now)
    local entry = entries[root] or add_entry(root)
    if mail then due = math.min(due, now + MAIL_MS) end
    entry.due, entry.is_complete, entry.last_tick = due, true, now
    if due < (entry.before or math.huge) then request_bell(entry, due, now) end
    return due
end

-- Forgets a partition whose check failed.
function due_times.forget(root)
    local entry = entries[root]
    if not entry then return end
    clear_bell(entry)
    entries[root], entry_count, losses = nil, entry_count - 1, losses + 1
end

-- Names what is remembered, unlike that of any other server: another text once a partition was forgotten, or all of them.
-- `root`: a partition of this server.
function due_times.identify_memory(root, now)
    memory = memory or string.format('%.0f %s', now, root)
    return memory .. ' ' .. losses
end

-- Iterates the roots of partitions that are remembered.
function due_times.iterate() return pairs(entries) end

return due_times
