"""Reports about compiled steps, for people: which lines take the time, and what became of them.

study.py      traces and lowers a step once more, and measures it
source.py     the user's functions, and the lines that records come from
names.py      arrays by the names that the user knows
findings.py   what both forms of a report say: shares of lines, loops, memory, passes
measured.py   runs instrumented code on copies of the step's memory
stages.py     the Program before and after each pass
page.py       a page of HTML (lines_view.py, passes_view.py, style.css)
script.py     the page about a script
text.py       the same for a terminal: `explain()`
"""
