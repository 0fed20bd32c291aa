"""Plans of migrations: the record, how one is made and checked, its policies, expressions and JSON form."""
