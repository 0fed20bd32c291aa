-- needs: data_conversion, fleet_signatures, json, keys, migration, way_back
-- What a plan would do with the instances of a partition, by class. The outcome of a signature is evaluated once for each
-- dry run and remembered; where it depends on the data, once for each instance.
local fleet_classes = {}

local MAX_REMEMBERED = 4096 -- signatures of all dry runs together
local FOREIGN = 'SB618' -- the code of an instance of a version that a plan is not for
local EACH = {} -- stands for an outcome that depends on the instance

local remembered, count = {}, 0

-- Compiles the program of a plan, or a JSON list of the programs of a way back to several versions.
local function compile(root, text)
    local texts = { text }
    if string.sub(text, 1, 1) == '[' then
        local ok, list = pcall(json.decode, text)
        if not ok or type(list[1]) ~= 'string' then return nil, 'programs are a JSON array of texts' end
        texts = list
    end
    local plans = {}
    for i, one in ipairs(texts) do
        local plan, why, is_stale = migration.compile(root, one)
        if not plan then return nil, why, is_stale end
        plans[i] = plan
    end
    return plans
end

-- Opens the classes of one call: `run` names the dry run, so that what an earlier one has seen does not count. Answers nil and
-- why when this is no plan; the third result is true when it names a version that is not published here.
function fleet_classes.open(root, text, run)
    local plans, why, is_stale = compile(root, text)
    if not plans then return nil, why, is_stale end
    local time = redis.call('TIME')
    return {
        root = root,
        plans = plans,
        now = time[1] * 1000 + math.floor(time[2] / 1000),
        prefix = table.concat({ run, root, '' }, '\1'),
        has_failures = redis.call('HLEN', keys.wrong(root)) > 0,
    }
end

local function split(text)
    local found = json.list()
    for name in string.gmatch(text or '', '[^\n]+') do found[#found + 1] = name end
    return found
end

local function encode(def, state, pending, answer)
    return json.encode({
        version = tonumber(string.match(def or '', '^(%d+)')) or 0,
        configuration = split(state),
        pending = pending or json.null,
        outcome = answer.outcome,
        target = json.list(answer.target or {}),
        effects = json.list(answer.effects or {}),
        code = answer.code or '',
        reason = answer.reason or '',
    })
end

local function remember(key, value)
    if remembered[key] == nil then
        if count >= MAX_REMEMBERED then remembered, count = {}, 0 end
        count = count + 1
    end
    remembered[key] = value
end

-- Chooses what to remember of a signature: the class; the class and the plan where only the data may refuse an instance;
-- EACH where every instance has to be evaluated, as long as none is known that the data does not refuse.
local function choose_remembered(answer, plan, def, text)
    if answer.reads_data_only then return { text, plan } end
    local source = plan and plan.from[def]
    return (answer.reads_data or source and source.reads_data) and EACH or text
end

-- Adds what becomes of the data, made once for each version of a plan. The restored ones get what they had.
local function add_data_effects(plan, answer)
    local source = answer.outcome == 'moves' and not answer.is_back and plan.from[answer.before.raw._def]
    if not source then return end
    source.data_effects = source.data_effects or data_conversion.describe(source, plan.keeps_removed)
    answer.effects = answer.effects or {}
    for _, text in ipairs(source.data_effects) do answer.effects[#answer.effects + 1] = text end
end

-- Evaluates an instance by the first plan that is for it; one that has the new version stays there. On the way back each
-- instance has an undo record of its own.
local function evaluate(classes, id)
    local answer
    for _, plan in ipairs(classes.plans) do
        local is_back = plan.spec.inverse_of ~= nil
        answer = (is_back and way_back or migration).evaluate(plan, classes.root, id, classes.now)
        if not answer then return nil end
        if answer.outcome == 'already' then return { outcome = 'kept', reason = 'it has the new version already' }, plan end
        add_data_effects(plan, answer)
        if is_back then answer.reads_data, answer.reads_data_only = true, false end
        if answer.outcome ~= 'kept' or answer.code ~= FOREIGN then return answer, plan end
    end
    return answer
end

-- Answers the class of an instance for which only the data decides whether it is that of `known`.
local function check_data(classes, id, known, def, state, pending)
    local code, reason = migration.check_data(known[2], classes.root, id, classes.now)
    if not code then return known[1] end
    return encode(def, state, pending, { outcome = 'refused', code = code, reason = reason })
end

-- Answers the class of an instance as JSON text; nil when there is no such instance.
function fleet_classes.find(classes, id)
    local signature, def, state, pending = fleet_signatures.read(classes.root, id, classes.has_failures)
    if not signature then
        if not def then return nil end
        return encode(nil, '', nil, { outcome = 'refused', code = 'SB620', reason = 'it cannot be read: ' .. def })
    end
    local key = classes.prefix .. signature
    local known = remembered[key]
    if type(known) == 'string' then return known, state end
    if known and known ~= EACH then return check_data(classes, id, known, def, state, pending), state end
    local answer, plan = evaluate(classes, id)
    if not answer then return nil end
    local text = encode(def, state, pending, answer)
    remember(key, choose_remembered(answer, plan, def, text))
    return text, state
end

return fleet_classes
