"""A machine's diagram: DOT for other tools, SVG for our pages, and the names of its parts.

``dot(outline)`` is Graphviz source. ``draw(outline)`` has Graphviz place the parts, level by level, in this process
and draws them itself, so that the SVG holds nothing but what is promised here; ``draw(outline, folds=names)``
draws those states, of ``foldable(outline)``, with their inside folded away; ``top_level(outline)`` are the folds that
leave the top level alone. ``index(outline)`` tells which id each state, transition and queue has,
and how the states are nested; ``active(outline, leaves)`` every state that is active with them. ``lit(svg, ids)``
marks parts on the server, ``standalone(svg)`` brings its own stylesheet and can be opened by itself.
``EventWords(outline)`` says the events of a history as the labels do.

``group_by_prefix(outline)`` is the outline of a large flat machine with states around those whose names begin alike:
class ``group``, and foldable. ``draw`` and ``index`` take ``merged=False`` for a drawing that has each transition by
itself, as an editor needs it.

What is in the SVG, and what may be painted on it
-------------------------------------------------
Nothing has an inline style or script, all colour comes from ``static/signalbox/admin/diagram.css``; without that
file the drawing is still readable (``currentColor`` on no background). User-written text is only ever
text or an attribute's value, never markup. Ids carry no prefix: one diagram of a machine to a page. ::

    <svg class="sb-diagram" data-machine="activation" viewBox="0 0 w h" width="w" height="h">
      <g class="edges">
        <g id="edge-start" class="edge start">…</g>                  <- of a state with states in it: edge-start-5
        <g id="edge-t3" class="edge transition" data-transition="t3" data-source="Waiting"
           data-target="Active" data-events="entitle">
          <title>event, guard and actions in full</title>
          <path class="line"/> <path class="head"/>
          <g class="label">
            <path class="sign"/>                                     <- the clock of a timer
            <text class="event">entitle<tspan class="flow" dx="8"></tspan></text>   <- PAINT .flow: the flow number
            <text class="guard">[…]</text> <text class="action">/ …</text>
          </g>
          <g id="edge-t3-2" class="branch">…</g>                     <- the line to a second target
        </g>
        <g id="feeds-2-todo" class="edge feeds" data-source="Waiting" data-queue="todo">…</g>
      </g>
      <g class="clusters">
        <g id="state-5" class="cluster state parallel" data-state="Fulfilling" data-index="5"
           data-leaves='["Picking", "Packed"]'>
          <title/> <rect class="plate"/> <path class="heading"/> <path class="rule"/>
          … lamp, name, details and count as in a node
        </g>
      </g>
      <g class="nodes">
        <g id="start" class="start">…</g>                            <- of a state with states in it: start-5
        <g id="state-2" class="node state" data-state="Waiting" data-index="2">
          <title>name, description, tags, entry, exit and work in full</title>
          <rect class="plate"/>                                  (a final state has <rect class="rim"/> too)
          <circle class="lamp"/>
          <text class="name"><tspan>…</text> <text class="detail">…
          <text class="count" text-anchor="end"></text>          <- PAINT: how many instances are in it
        </g>
        <g id="state-9" class="node history" data-state="again">…</g>
        <g id="queue-todo" class="node queue" data-queue="todo">
          <title/> <path class="plate"/> <text class="name">
          <text class="count" text-anchor="end"></text>          <- PAINT: how many jobs are ready
        </g>
      </g>
      <g class="controls">                                       <- seen only where the page makes links of them
        <g id="fold-5" class="fold" data-fold="Fulfilling">…</g>
        <g id="late-2" class="mark late" data-of="Waiting" data-states='["Waiting"]'>   (or failing-2, failing)
          <text class="told"></text>                             <- PAINT: a sign, how many; ``shown`` on the mark
        </g>
      </g>
    </svg>

More classes: states ``initial``, ``final``, ``compound``, ``parallel``, ``region`` (active together with those beside
it) and ``folded`` (its inside is not drawn); transitions ``internal`` (no target: the state is not left),
``always``, ``after``, ``done`` and ``error`` (what work or states lead to); lines from a history to its ``default``.
``data-target`` is absent on an internal transition. ``data-leaves`` stands on every state with states in it: the leaves
whose counts add up to its own. ``data-transition`` holds several ids where one line stands for several
transitions, those between the same two states: its flow is their sum, its title lists them.

To paint: set ``textContent`` of ``.count`` and ``.flow`` (they start empty, hold seven characters such
as ``12,345`` or ``+1.2k/s``, and are set in tabular digits), and add or remove these classes, which the
stylesheet knows. Leave positions, ids and other attributes alone.

    on a state     ``occupied`` its lamp is on · ``current`` the instance shown is in it ·
                   ``heat-1`` … ``heat-5`` the more instances, the stronger · ``changed`` flashes once ·
                   ``compared`` it was in it, at another moment
    on a transition ``busy`` it was taken a moment ago · ``taken`` part of the step shown ·
                   ``possible`` its event could be fired now · ``changed`` flashes once
    on a queue     ``occupied`` jobs wait · ``dead`` some are out of attempts · ``changed``
    on the svg     ``stale`` what is painted is old: all marks fade

Colours are custom properties with a fallback for light and dark; a page sets what it likes around the SVG:
``--sb-ink --sb-paper --sb-node --sb-lit --sb-lit-ink --sb-heat-fill --sb-heat-line --sb-go --sb-stop --sb-note``.
"""

# ruff: noqa: F401  others take these from here

from .dot_source import dot
from .event_words import EventWords
from .groups import GROUP, group_by_prefix
from .layout.levels import LayoutFailed
from .layout.state_tree import effective, foldable, top_level
from .part_index import active, index, list_changed_parts
from .part_names import edge_id, fold_id, queue_id, state_id
from .svg.drawing import DRAWING, draw, lit, standalone
