-- The keys below a pattern's root (machines/engine/patternkeys.py is the other half; a test holds the two together).
-- A function is named after the class and the method there: LockKeys.last is lock_last.
local patternkeys = {}

function patternkeys.lock_holder(root) return root .. ':holder' end
function patternkeys.lock_last(root) return root .. ':last' end
function patternkeys.record_last(root) return root .. ':last' end
function patternkeys.record_one(root, key) return root .. ':r:' .. key end
function patternkeys.session_one(root, handle) return root .. ':s:' .. handle end
function patternkeys.session_of(root, subject) return root .. ':of:' .. subject end
function patternkeys.ids_nodes(root) return root .. ':nodes' end
function patternkeys.ids_holders(root) return root .. ':holders' end
function patternkeys.ids_guard(root) return root .. ':guard' end
function patternkeys.block_next(root) return root .. ':next' end
function patternkeys.buffer_pending(root) return root .. ':pending' end
function patternkeys.buffer_claims(root) return root .. ':claims' end
function patternkeys.buffer_held(root) return root .. ':held' end
function patternkeys.buffer_seq(root) return root .. ':seq' end
function patternkeys.buffer_marks(root) return root .. ':marks' end
function patternkeys.buffer_open(root, entity) return root .. ':e:' .. entity end
function patternkeys.buffer_batch(root, id) return root .. ':b:' .. id end

function patternkeys.distinct_set(root, day, part) return root .. ':set:' .. day .. ':' .. part end
function patternkeys.distinct_sketch(root, day, part) return root .. ':sketch:' .. day .. ':' .. part end
function patternkeys.board_scores(root, period) return root .. ':scores:' .. period end
function patternkeys.board_epoch(root) return root .. ':epoch' end
function patternkeys.board_span(root) return root .. ':span' end
function patternkeys.stream_log(root) return root .. ':log' end
function patternkeys.stream_dead(root) return root .. ':dead' end

return patternkeys
