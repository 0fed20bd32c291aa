"""People and programs: who they are, what they may do, and the sign-in of programs by tokens."""
