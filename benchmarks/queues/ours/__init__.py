"""Our side of the benchmark: an installed app with its handler, as any project would write it."""
