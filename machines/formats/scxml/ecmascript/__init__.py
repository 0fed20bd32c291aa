"""ECMAScript to the expressions and actions of machines. It is only read: none of it is ever run."""
