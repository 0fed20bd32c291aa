-- The keys below a partition's root that functions use; machines/engine/keys.py has all, and a test compares the two.
local keys = {}

function keys.meta(root) return root .. ':meta' end
function keys.states(root) return root .. ':states' end
function keys.queues(root) return root .. ':queues' end
function keys.flow(root) return root .. ':flow' end
function keys.refused(root) return root .. ':refused' end
function keys.log(root) return root .. ':log' end
function keys.timers(root) return root .. ':timers' end
function keys.late(root) return root .. ':late' end
function keys.outbox(root) return root .. ':out' end
function keys.floors(root) return root .. ':floors' end
function keys.seen(root, source) return root .. ':seen:' .. source end
function keys.held(root, id) return root .. ':held:' .. id end
function keys.pulse(root) return root .. ':pulse' end
function keys.bells(root) return root .. ':bells' end
function keys.clock(root) return root .. ':bell' end
function keys.definition(root, version) return root .. ':def:' .. version end
function keys.instance(root, id) return root .. ':i:' .. id end
function keys.state(root, state) return root .. ':in:' .. state end
function keys.history(root, id) return root .. ':h:' .. id end
function keys.undo(root, id) return root .. ':undo:' .. id end
function keys.outcome(root, id, key) return root .. ':k:' .. #id .. ':' .. id .. ':' .. key end
function keys.creation(root, id, key) return root .. ':c:' .. #id .. ':' .. id .. ':' .. key end
function keys.job(root, job) return root .. ':job:' .. job end
function keys.ready(root, queue) return root .. ':q:' .. queue end
function keys.leased(root, queue) return root .. ':q:' .. queue .. ':leased' end
function keys.delayed(root, queue) return root .. ':q:' .. queue .. ':delayed' end
function keys.dead(root, queue) return root .. ':q:' .. queue .. ':dead' end
function keys.handled(root, queue) return root .. ':q:' .. queue .. ':handled' end
function keys.bell(root, queue) return root .. ':q:' .. queue .. ':bell' end
function keys.rules(root, queue) return root .. ':q:' .. queue .. ':rules' end
function keys.turns(root, queue) return root .. ':q:' .. queue .. ':turns' end
function keys.limits(root, queue) return root .. ':q:' .. queue .. ':limits' end
function keys.members(root, queue) return root .. ':q:' .. queue .. ':members' end
function keys.arrivals(root, queue) return root .. ':q:' .. queue .. ':arrivals' end
function keys.releases(root, queue) return root .. ':q:' .. queue .. ':releases' end
function keys.admitted(root, queue) return root .. ':q:' .. queue .. ':admitted' end
function keys.stats(root, queue) return root .. ':qs:' .. queue end
function keys.unique(root, queue, key) return root .. ':u:' .. queue .. ':' .. key end
function keys.withdrawn(root, job) return root .. ':w:' .. job end
function keys.lookup(root, field) return root .. ':by:' .. field end
function keys.versions(root) return root .. ':versions' end
function keys.wrong(root) return root .. ':wrong' end
function keys.staged(root) return root .. ':staged' end
function keys.imported(root, transfer) return root .. ':imported:' .. transfer end
function keys.enqueued(root, key) return root .. ':once:' .. key end
function keys.batch(root, id) return root .. ':batch:' .. id end

return keys
