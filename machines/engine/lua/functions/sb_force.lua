-- needs: arguments, commit, configurations, core, fields, instances, json, replies, values
-- sb_force: a repair: sets an instance's state (and some data) without asking its transitions. Runs no action;
-- jobs of the state left are withdrawn, those of the state entered are enqueued.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 state (of a chart: one or several, a line each) · 3 data to change (JSON object, null unsets; or '')
--          · 4 expect (version or '') · 5 actor
--          · 6 reason (required) · 7 now (ms since the epoch, or '')
-- Returns: {OK, '', '0', instance JSON} · {CONFLICT, version} · {NOINSTANCE} · {NOMACHINE} · {BADPAYLOAD, why, field}
--          · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    as sb_fire
local function patch(ctx, text)
    if text == '' then return nil end
    local ok, data = pcall(json.decode, text)
    if not ok then return values.message(data), '' end
    if values.kind(data) ~= 'object' then return 'data is a JSON object, not ' .. values.kind(data), '' end
    for name, value in pairs(data) do
        local field = ctx.program.fields[name]
        if not field then return "no data field '" .. name .. "'", name end
        if value == json.null and not fields.fits(nil, field.types) then
            fields.clear(ctx, field)
        else
            local fine, caught = pcall(fields.write, ctx, field, values.plain(value))
            if not fine then return values.message(caught), name end
        end
    end
    local fine, caught = pcall(fields.weigh, ctx)
    if not fine then return values.message(caught), '' end
    return nil
end

-- Of a chart, several states may be named, a line each; each region takes the one named below it, or its initial state.
local function targets_of(ctx, text)
    local targets = {}
    for name in string.gmatch(text or '', '[^\n]+') do
        local index = ctx.program.index[name]
        if not index then return nil, "the definition has no state '" .. name .. "'" end
        if ctx.program.states[index].kind == 'history' then return nil, "'" .. name .. "' is a history, not a state" end
        targets[#targets + 1] = index
    end
    if not targets[1] then return nil, 'the state is missing' end
    targets = configurations.innermost(ctx.program, targets)
    if targets[2] and not (ctx.chart and configurations.together(ctx.program, targets)) then
        return nil, 'these states are never active together'
    end
    return targets
end

local function place(ctx, targets)
    core.place(ctx, targets)
    if not ctx.chart then commit.prepare(ctx) end
end

return function(KEYS, ARGV)
    local id, state, data, expect = ARGV[1], ARGV[2], ARGV[3] or '', ARGV[4] or ''
    local actor, reason = ARGV[5] or '', ARGV[6] or ''
    local bad = arguments.misfit(expect, '', actor, reason, ARGV[7] or '')
    if not bad and not string.find(reason, '%S') then bad = 'a repair needs a reason' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local ctx, missing = instances.open(KEYS[1], id, arguments.now(ARGV[7]))
    if not ctx then return missing end
    if expect ~= '' and tonumber(expect) ~= ctx.version then return { replies.CONFLICT, ctx.raw._version } end
    local targets, wrong = targets_of(ctx, state)
    if wrong then return { replies.BAD_ARGUMENT, wrong } end
    local why, field = patch(ctx, data)
    if why then return { replies.BAD_PAYLOAD, why, field } end
    local ready, caught = pcall(place, ctx, targets)
    if not ready then return { replies.BAD_ARGUMENT, values.message(caught) } end
    local ok, fault = commit.step(ctx, '(force)', actor, reason, '0')
    if not ok then return { replies.FAULT, fault } end
    return replies.instance(ctx)
end
