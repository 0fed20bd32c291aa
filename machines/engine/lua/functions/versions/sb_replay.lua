-- needs: arguments, json, keys, recorded_steps, replays, replies, time_limit, values
-- sb_replay: runs recorded steps of histories on a version of their machine, by the interpreter, without writing.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 the version as `<version>:<digest>`, or the program of a draft (JSON) · 2 recorded version -> how it corresponds
--          (JSON): same, def, states, events, transitions, fields, timers · then id, snapshot (JSON), steps (JSON array of
--          history entries, oldest first), id, snapshot, steps, ... (at most 200 instances and 4000 steps)
-- Returns: {OK, JSON, ...} in order, one for each instance that was begun, in one slice: {done, compared, untold: reason ->
--          steps, divergence or absent, snapshot}; `done`: steps that need no further call; the snapshot continues behind
--          them · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    as sb_explain for each step
local MAX_INSTANCES, MAX_STEPS = 200, 4000

-- Parses one instance to {run, entries}.
local function parse_instance(program, rules, id, snapshot_text, steps_text)
    arguments.need(id, 'the id is missing')
    local ok, snapshot = pcall(cjson.decode, snapshot_text or '')
    arguments.need(ok, 'a snapshot is a JSON object')
    local is_json, entries = pcall(json.decode, steps_text or '')
    arguments.refuse(not is_json and 'the list of steps is not JSON: ' .. values.describe_error(entries))
    arguments.need(json.is_array(entries), 'the steps are a JSON array')
    return { run = replays.open(program, rules, id, snapshot), entries = entries }
end

local function note(result, reason, count)
    result.untold[reason] = (result.untold[reason] or 0) + count
end

-- Replays one instance until its steps or the time are used up.
local function replay(run, entries, is_over)
    local result, count = { done = 0, compared = 0, untold = {} }, #entries
    while result.done < count and not is_over() do
        local step = recorded_steps.read(entries[result.done + 1])
        local found = step and replays.step(run, step) or not step and { untold = 'unknown step', stops = true } or nil
        if found and found.stops then
            note(result, found.untold, count - result.done)
            result.done, result.stopped = count, found.untold
            break
        end
        result.done = result.done + 1
        if found and found.untold then note(result, found.untold, 1) else result.compared = result.compared + 1 end
        if found and found.divergence then
            result.divergence = found.divergence
            break
        end
    end
    result.snapshot = not result.divergence and not result.stopped and replays.save(run) or nil
    return result
end

return function(KEYS, ARGV)
    local root, count, over = KEYS[1], (#ARGV - 2) / 3, time_limit.start()
    local is_whole = count >= 1 and count <= MAX_INSTANCES and count % 1 == 0
    arguments.need(is_whole, 'each instance comes with its snapshot and its steps, 1 to ' .. MAX_INSTANCES)
    local rules = replays.read_rules(ARGV[2])
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local program = replays.load(root, ARGV[1])
    local reply, steps = { replies.OK }, 0
    for i = 1, count do
        local at = i * 3
        local found = parse_instance(program, rules, ARGV[at], ARGV[at + 1], ARGV[at + 2])
        steps = steps + #found.entries
        arguments.need(steps <= MAX_STEPS, 'at most ' .. MAX_STEPS .. ' steps')
        local first = i == 1
        reply[i + 1] = json.encode(replay(found.run, found.entries, function()
            if first then
                first = false
                return false
            end
            return over()
        end), -64)
        if over() then break end
    end
    return reply
end
