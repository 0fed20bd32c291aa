-- The files under lua/ are wrapped as locals of one library; each names what it uses in its `-- needs:` line.
std = 'lua51'
max_line_length = 130
read_globals = { 'redis', 'cjson', 'cmsgpack', 'struct', 'unpack' }
files['machines/engine/lua'] = {
    read_globals = { 'acceptance', 'agenda', 'budget', 'reserved', 'json', 'texts', 'values', 'arithmetic', 'builtins', 'fields', 'expressions', 'explain', 'actions', 'filters',
        'program', 'keys', 'patternkeys', 'core', 'payloads', 'jobs', 'commit', 'arguments', 'replies', 'instances', 'journal', 'steps',
        'finishing', 'growing', 'keyset', 'outcomes', 'random', 'batches', 'births', 'chart', 'configurations', 'delivering', 'durations',
        'ecmascript', 'inbox', 'ledger', 'limits', 'lists', 'locking', 'lookups', 'mending', 'permits', 'previews', 'removal', 'repairs', 'sends',
        'sequences', 'sessions', 'statemachine', 'stats', 'stopwatch', 'streams', 'sweeping', 'timers', 'troubles', 'waiting', 'work', 'calendar', 'distinct', 'boards' },
}
