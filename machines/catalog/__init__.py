"""The catalog: definitions from submission to publication, in SQL for people and in Redis for instances."""
