-- needs: keys
-- Wakes workers for ready jobs: publishes the name of the queue on the channel of its partition. A worker that hears it tries
-- the queue until a take finds fewer jobs than it asked for; only then does the queue ring again. So a queue with a backlog
-- rings twice a second at most, however fast jobs come. The memory is lost when the library is loaded or the server
-- restarts; then queues ring once too often.
local queue_bells = {}

local REPEAT_MS = 500 -- a queue whose jobs nobody takes rings again after this: those who heard it may be gone
local MAX_QUEUES = 20000
local MAX_BELL = 8

-- root -> queue -> ms of the latest ring, while no take has emptied the queue since. `list_queues`: the bell list of each
-- queue whose latest caller waits on that list instead of the channel.
local rung, rung_count = {}, 0
local list_queues, list_count = {}, 0

local function note(root, queue, now)
    local queues = rung[root]
    if not queues or not queues[queue] then
        if rung_count >= MAX_QUEUES then rung, rung_count, queues = {}, 0, nil end
        rung_count = rung_count + 1
    end
    if not queues then
        queues = {}
        rung[root] = queues
    end
    queues[queue] = now
end

local function read_clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000
end

local function push(bell, count)
    local rings = { '1' }
    for i = 2, math.min(count or 1, MAX_BELL) do rings[i] = '1' end
    local length = redis.pcall('LPUSH', bell, unpack(rings))
    if type(length) == 'number' and length > MAX_BELL then redis.call('LTRIM', bell, 0, MAX_BELL - 1) end
end

-- Wakes workers for `count` new jobs. A bell that cannot ring does not fail the call. `now`: the server's time in ms where the
-- caller has read it.
function queue_bells.ring(root, queue, count, now)
    if list_count > 0 then
        local bell = keys.bell(root, queue)
        if list_queues[bell] then push(bell, count) end
    end
    now = now or read_clock()
    local last = rung[root] and rung[root][queue]
    if last and now - last < REPEAT_MS and now >= last then return end
    note(root, queue, now)
    redis.pcall('SPUBLISH', keys.bells(root), 'job ' .. queue)
end

-- Notes that a take found fewer jobs than it asked for: the next job rings. `hears`: whether the caller hears the channel.
function queue_bells.note_empty(root, queue, hears)
    local queues = rung[root]
    if queues and queues[queue] then
        queues[queue], rung_count = nil, rung_count - 1
        if not next(queues) then rung[root] = nil end
    end
    if hears and list_count == 0 then return end
    local bell = keys.bell(root, queue)
    if hears then
        if list_queues[bell] then list_queues[bell], list_count = nil, list_count - 1 end
    elseif not list_queues[bell] then
        if list_count >= MAX_QUEUES then list_queues, list_count = {}, 0 end
        list_queues[bell], list_count = true, list_count + 1
    end
end

-- Lists the queues of a partition, separated by spaces, that rang and were not emptied since; nil for none.
function queue_bells.list_rung(root)
    local queues = rung[root]
    if not queues then return nil end
    local names = {}
    for queue in pairs(queues) do names[#names + 1] = queue end
    return table.concat(names, ' ')
end

-- Iterates the roots of partitions of which a queue rang and was not emptied since.
function queue_bells.iterate() return pairs(rung) end

return queue_bells
