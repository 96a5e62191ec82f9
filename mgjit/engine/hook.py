"""The hook through which a trace in progress intercepts the engine.

At the start of every operation, `Value` and `State` look here whether it is to be recorded instead of computed.
Replacing their methods during a trace would be free otherwise, but CPython 3.13 may go on using methods that it has
cached from before the class was changed.
"""

from __future__ import annotations

from typing import Any

#: The recording in progress, or None (record/instrument.py).  It has `thread`, the identifier of the thread that is
#: traced, and one function for each operation of Value and State.
recording: Any = None
