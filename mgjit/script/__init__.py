"""Run programs that know nothing of mgjit: their training loops become compiled steps when a module is loaded.

1. `find.py` finds the loops that train in the syntax tree of a module (`sums.py`: what only adds something up).
2. `outline.py` cuts the body of such a loop into the part that can be a step, and the rest (`names.py` knows what
   statements read and assign).
3. `rewrite.py` lets the loop try the step first; if that has done nothing, the statements run as they stand
   (`versions.py`: both versions of a loop).
4. A section (`section.py`) decides at run time whether a step is tried (`watching.py`; `counted.py`: how often and how
   long iterations run; `running.py`: in which others; `purse.py`: what tries may cost), and whether it is worth it
   (`trying.py`).  `step.py` makes its calls: one that cannot be made exactly as Python would make it is undone.
5. `load.py` runs a script with it, and `hook.py` modules that are imported.
6. `remembered.py` keeps for the next run what became of each section.
"""
