-- The keys below a pattern's root (machines/engine/pattern_keys.py is the other half; a test compares the two). A function is
-- named after the class and the method there: LockKeys.last is lock_last.
local pattern_keys = {}

function pattern_keys.lock_holder(root) return root .. ':holder' end
function pattern_keys.lock_last(root) return root .. ':last' end
function pattern_keys.record_last(root) return root .. ':last' end
function pattern_keys.record_one(root, key) return root .. ':r:' .. key end
function pattern_keys.session_one(root, handle) return root .. ':s:' .. handle end
function pattern_keys.session_of(root, subject) return root .. ':of:' .. subject end
function pattern_keys.ids_nodes(root) return root .. ':nodes' end
function pattern_keys.ids_holders(root) return root .. ':holders' end
function pattern_keys.ids_guard(root) return root .. ':guard' end
function pattern_keys.block_next(root) return root .. ':next' end
function pattern_keys.buffer_pending(root) return root .. ':pending' end
function pattern_keys.buffer_claims(root) return root .. ':claims' end
function pattern_keys.buffer_held(root) return root .. ':held' end
function pattern_keys.buffer_seq(root) return root .. ':seq' end
function pattern_keys.buffer_marks(root) return root .. ':marks' end
function pattern_keys.buffer_open(root, entity) return root .. ':e:' .. entity end
function pattern_keys.buffer_batch(root, id) return root .. ':b:' .. id end

function pattern_keys.distinct_set(root, day, part) return root .. ':set:' .. day .. ':' .. part end
function pattern_keys.distinct_sketch(root, day, part) return root .. ':sketch:' .. day .. ':' .. part end
function pattern_keys.board_scores(root, period) return root .. ':scores:' .. period end
function pattern_keys.board_epoch(root) return root .. ':epoch' end
function pattern_keys.board_span(root) return root .. ':span' end
function pattern_keys.stream_log(root) return root .. ':log' end
function pattern_keys.stream_dead(root) return root .. ':dead' end

return pattern_keys
