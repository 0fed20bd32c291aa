"""Says of each kind of finding what is wrong and what to do about it, for the finding reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding. ``title`` says what is wrong, ``advice`` what to do about it."""

    code: str
    title: str
    advice: str


_ALL = [
    Code("SB101", "a state is named that does not exist", "correct the name, or add the state"),
    Code("SB102", "a data field is named that `context` does not declare", "correct the name, or declare the field"),
    Code("SB103", "`event.<name>` is no field of that event's payload", "correct the name, or declare the field"),
    Code(
        "SB104",
        "a value has the wrong shape: text where an object is needed, and the like",
        "see the key in the definition reference",
    ),
    Code("SB105", "a key is not known here", "correct it; a misspelt `guard` would otherwise be no guard at all"),
    Code("SB106", "a required key is missing", "add it"),
    Code("SB107", "a name is not allowed", "see the table of names"),
    Code("SB108", "the feature is not in this release yet", "leave it out, or wait for the release that has it"),
    Code("SB109", "an expression cannot be read, or uses what expressions do not have", "see the expression language"),
    Code("SB110", "a value is not plain JSON", "use objects, arrays, text, finite numbers, true, false and null"),
    Code("SB111", "something is larger or deeper than its limit", "see the table of limits"),
    Code("SB112", "a value does not fit the type its field is declared with", "change the value, or the type"),
    Code("SB113", "a duration cannot be read", "write a number and a unit: 500ms, 30s, 5m, 2h, 1d"),
    Code("SB114", "a number is out of its range", "stay within the range the message names"),
    Code("SB115", "two things have the same name, or names that cannot be told apart", "rename one of them"),
    Code("SB116", "an action is not one of the verbs, or several at once", "write one verb for each action"),
    Code("SB117", "a final state has a way out or work to do", "remove it, or make the state an ordinary one"),
    Code("SB118", "`always` transitions form an endless cycle", "give one of them a guard that fails at some point"),
    Code("SB119", "a key stands where it has no meaning", "move it to where the hint says"),
    Code("SB120", "a function is not known, or called with the wrong arguments", "see the table of functions"),
    Code("SB121", "`instance` or `trigger` has no such fact", "see the table of names in expressions"),
    Code("SB122", "several targets cannot be active at once", "name one state for each region of a parallel state"),
    Code("SB123", "what is entered by default is not a state inside", "name a state that is"),
    Code("SB124", "a field is to be indexed whose values have no order", "declare it with a scalar type"),
    Code(
        "SB125",
        "approval names neither a repair, publish or migrate nor an event of the machine",
        "name a repair, publish, migrate, or fire: and an event it listens for",
    ),
    Code("SB126", "a schedule does not fit: its time, its zone, or what it does", "see the page of schedules"),
    Code(
        "SB127",
        "a name is reserved: a handler, a queue or a machine of the product",
        "choose another name; what the product does is asked for by its pages and services",
    ),
    Code(
        "SB128",
        "an encrypted field is read, computed, compared or indexed, differs from a published version, or has no codec",
        "pass the value on whole, declare the field as searchable, rename it, or set `CODEC`",
    ),
    Code("SB130", "the format is not known, or cannot be read yet", "use json or yaml"),
    Code("SB131", "the text is not well-formed", "correct it at the line and column named"),
    Code("SB132", "a key stands twice in one object", "remove one of them"),
    Code("SB133", "a number is not finite, or too large to be held exactly", "write a smaller number, or a text"),
    Code("SB134", "the text is not valid UTF-8, or holds NUL", "save the file as UTF-8"),
    Code(
        "SB135", "YAML is used beyond plain data: tags, anchors that repeat or loop, several documents", "write it out"
    ),
    Code("SB136", "a file cannot be read", "check that the file exists, and that this account may read it"),
    Code("SB137", "the format needs packages that are not installed", "install the extra that the message names"),
    Code("SB140", "a name stands for code that the text does not hold", "write the expression at the path named"),
    Code("SB141", "the format says something that machines cannot do here", "write it in another way, or leave it out"),
    Code("SB142", "an event processor other than SCXML's is named", "leave the type out, or let a handler do the work"),
    Code("SB143", "XML is used as a value", "write JSON, or text"),
    Code("SB144", "the document is not valid SCXML", "see the recommendation, https://www.w3.org/TR/scxml/"),
    Code("SB145", "ECMAScript that cannot be translated", "write it in other words; see what is read"),
    Code("SB201", "no transition leads to the state", "add one, or remove the state; only force() reaches it"),
    Code("SB202", "an instance cannot leave the state, and it is not final", 'add a way out, or `"type": "final"`'),
    Code("SB203", "a transition is never reached: one before it always holds", "put the guarded one first"),
    Code(
        "SB204", "a chain of guards has no last transition without one", "add one, if an event should never be refused"
    ),
    Code("SB205", "a key has no effect in this release", "keep it or leave it out; nothing depends on it"),
    Code("SB206", "a schema keyword is not checked in this release", "check it in a guard"),
    Code("SB207", "an event is declared and no state listens for it", "listen for it, or remove the declaration"),
    Code("SB208", "an event is raised and no state listens for it", "listen for it, or remove the raise"),
    Code("SB209", "the event a transition listens for never happens", "correct the invoke's id in the event's name"),
    Code("SB210", "a guard is always false, so its transition is never taken", "remove the transition"),
    Code("SB211", "these actions or transitions never run", "remove them"),
    Code("SB212", "the definition can be read in two ways", "write it as the hint says"),
    Code("SB213", "the two sides of == or != have types that are never equal", "convert one: str(x), number(x)"),
    Code("SB214", "an action cancels what is never sent", "correct the id, or remove the action"),
    Code("SB215", "a timer goes off without leading anywhere", "give it a target or actions, or another way out"),
    Code("SB216", "any machine may send to this one", "name the machines that do under `accepts`"),
    Code("SB217", "more warnings than are shown", "correct these first"),
    Code(
        "SB218",
        "the machine is published with another number of partitions",
        "run `manage.py machine repartition`, or leave the number out",
    ),
    Code("SB220", "an action is only a name, and became a message of that name", "write out the actions it stands for"),
    Code("SB221", "the text says something that has no meaning here; it was left out", "see whether you rely on it"),
    Code("SB222", "the format cannot carry this; it is missing from the text", "keep the definition itself as well"),
    Code("SB223", "a name is not allowed here, and was changed", "use the new name from now on"),
    Code("SB224", "something means a little more or less here than in the format", "see whether you rely on it"),
]
CODES = {code.code: code for code in _ALL}
