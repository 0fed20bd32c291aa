"""The pages of alarms: what stands, what is snoozed, and the history."""
