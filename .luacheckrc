-- Each file under lua/ becomes a local of one library, under its file name; `-- needs:` lists the modules that it uses.
std = 'lua51'
max_line_length = 130
read_globals = { 'bit', 'redis', 'cjson', 'cmsgpack', 'struct', 'unpack' }
files['machines/engine/lua'] = {
    read_globals = {
        'arguments', 'calendar', 'idempotency', 'json', 'keys', 'monotonic', 'partition_log', 'random', 'replies', 'shared_lists', 'streams', 'strings', 'time_limit', 'work_budget', -- base
        'draft_programs', 'durations', 'fields', 'programs', 'reserved_events', -- definitions
        'action_source', 'chart_state', 'compiled_steps', 'lua_source', 'refusals', 'step_compiler', 'step_source', 'step_writes', -- compiled
        'arithmetic', 'builtins', 'ecmascript', 'expressions', 'guard_explanation', 'sequences', 'values', -- expressions
        'awaited_jobs', 'batches', 'commit', 'creation', 'deletion', 'history_entries', 'instances', 'payloads', 'previews', 'pulse', 'repairs', 'step_jobs', 'step_log', 'step_plan', 'steps', -- instances
        'actions', 'chart', 'chart_writes', 'configurations', 'job_requests', 'permits', 'sends', -- interpreter
        'completion', 'dead_jobs', 'due_jobs', 'group_admissions', 'group_limits', 'held_jobs', 'job_batches', 'job_repair', 'job_words', 'jobs', 'packed_jobs', 'queue_bells', 'queue_counters', 'queue_limits', 'ready_order', -- jobs
        'accepted_senders', 'delivery', 'inbox', 'traces', -- messages
        'cardinality', 'locks', 'pattern_keys', 'scoreboards', 'sessions', -- patterns
        'data_indexes', 'failures', 'filters', 'keyset_pages', 'live_figures', 'queue_figures', 'texts', -- search
        'expansions', 'memory_instances', 'simulations', -- simulation
        'state_machine', -- sm
        'due_times', 'timer_firing', 'timers', -- timers
        'rollouts', 'version_counters', 'version_policy', -- versions
        'departures', 'instance_records', 'record_checks', 'record_writes', 'redirects', 'slots', -- transfer
        'data_conversion', 'migration', 'migration_places', 'migration_work', 'migration_writes', 'undo_records', 'version_gates', 'recorded_steps', 'replays', -- versions
        'fleet_classes', 'fleet_signatures', 'migration_marks', 'way_back', -- versions
    },
}
