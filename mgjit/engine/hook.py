"""Where a trace in progress is announced to the engine.

`Value` and `State` ask here, at the start of every operation, whether it is to be recorded instead of
computed.  Replacing their methods for the time of a trace would cost nothing outside of it, but CPython
3.13 may keep using what an attribute meant before its class was changed.
"""

from __future__ import annotations

from typing import Any

#: What records, or None.  Has `thread`, the identifier of the thread that is traced, and one function for
#: each operation of Value and State.
recording: Any = None
