-- needs: keys
-- When something is due next in each partition, as far as is known here: a timer, the end of a lease, a delayed job, a look
-- after messages. So a tick of a partition where nothing is due yet reads no key, and a step wakes those who tick only for
-- what comes earlier than they expect.
-- This memory is lost when the library is loaded or the server starts anew; then a tick looks properly. What it holds may be
-- too early (its timer was disarmed since, its step failed), never too late.
local due_times = {}

local HORIZON_MS = 5000 -- whoever ticks looks at least this often: what is further away rings nothing
local MAIL_MS = 250 -- messages are carried on by whoever posted them; those still there after this are a ticker's to deliver
local MAX_BELL = 1
local MAX_PARTITIONS = 10000

-- `due`: nothing is due before it; `sure`: a tick has looked, so that `due` is all there is; `seen`: the ms of the latest tick;
-- `mailed`: messages were posted since the latest look; `unrung`: the bell is to ring when the call has done its work; `before`:
-- what `due` was when the latest look began.
local known, partitions, unrung = {}, 0, 0

local function remember(root)
    if partitions >= MAX_PARTITIONS then known, partitions, unrung = {}, 0, 0 end
    local one = { due = math.huge, sure = false, seen = 0, mailed = false, unrung = false }
    known[root], partitions = one, partitions + 1
    return one
end

local function hush(one)
    if one.unrung then one.unrung, unrung = false, unrung - 1 end
end

local function announce(one, due, now)
    if due - now <= HORIZON_MS and not one.unrung then one.unrung, unrung = true, unrung + 1 end
end

-- Something will be due at `due` ms.
function due_times.note(root, due, now)
    local one = known[root] or remember(root)
    if due >= one.due then return end
    one.due = due
    announce(one, due, now)
end

-- Messages were posted. Counted by the server's own clock, whatever time the step was given.
function due_times.mail(root)
    local one = known[root] or remember(root)
    if one.mailed then return end
    one.mailed = true
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    due_times.note(root, now + MAIL_MS, now)
end

-- Wakes one of those who tick, where something was noted that comes earlier than they were told. For the end of a call: a step
-- that fails must leave no key behind. A bell is no work: what lies in its way is no reason to fail.
function due_times.ring(root)
    if unrung == 0 then return end
    local one = known[root]
    if not one or not one.unrung then return end
    hush(one)
    local bell = keys.clock(root)
    local length = redis.pcall('LPUSH', bell, '1')
    if type(length) == 'number' and length > MAX_BELL then redis.call('LTRIM', bell, 0, MAX_BELL - 1) end
end

-- The ms of what is due next, math.huge for nothing, where it is known that nothing is due now; nil where one has to look. A
-- clock that was set back knows nothing.
function due_times.quiet(root, now)
    local one = known[root]
    if not one or not one.sure or now < one.seen or now >= one.due then return nil end
    one.seen = now
    return one.due
end

-- A look begins: what is noted meanwhile, it will find.
function due_times.open(root)
    local one = known[root] or remember(root)
    if one.due > -math.huge then one.before = one.due end
    one.due, one.sure, one.mailed = -math.huge, false, false
end

-- It found that this is due next, and whether messages wait; answers when to look again. Others who tick are woken where that
-- is earlier than they may have been told.
function due_times.close(root, due, mail, now)
    local one = known[root] or remember(root)
    if mail then due = math.min(due, now + MAIL_MS) end
    one.due, one.sure, one.seen = due, true, now
    if due < (one.before or math.huge) then announce(one, due, now) end
    return due
end

-- It could not find out.
function due_times.forget(root)
    local one = known[root]
    if not one then return end
    hush(one)
    known[root], partitions = nil, partitions - 1
end

return due_times
