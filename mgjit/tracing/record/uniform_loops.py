"""Loops that do the same to each of many objects, such as the update of all parameters, are recorded at once.

    for i, p in enumerate(params):        for i, p in __mgjit__.uniform("enumerate", (params,), USE, (lambda: m, ...)):
        m[i] = 0.9 * m[i] + p.grad            m[i] = 0.9 * m[i] + p.grad
        p.data -= rate * m[i]                 p.data -= rate * m[i]

1. The body is assignments, one after the other.  Each changes a local name that the body does not read before, an
   attribute of an object that the loop runs through, or the element of a list that belongs to it.
2. What else the body reads are numbers, attributes and functions that compute and do nothing else.
3. How the body uses the names is found here (`Use`).  Whether their contents are what they usually are is asked when
   the loop runs (record/uniform.py); otherwise the loop runs as it is written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple


class Use(NamedTuple):
    """How the body of a loop uses names.

    Attributes:
        roles: of the names that the loop assigns, in order: "object", "number", "index", or "" if it is not used.
        attributes: those of such objects, by position of the name: (position, name, is read, is written).
        elements: captured lists of which the body uses the element that the index says: (number, is read, is written).
        numbers: captured numbers.
        paths: captured objects with the attributes in which the body finds a number: (number, attributes).
    """

    roles: tuple[str, ...]
    attributes: tuple[tuple[int, str, bool, bool], ...]
    elements: tuple[tuple[int, bool, bool], ...]
    numbers: tuple[int, ...]
    paths: tuple[tuple[int, tuple[str, ...]], ...]


class Unfit(Exception):
    """The loop does something else."""


#: The builtins by which a loop may run through its iterables, and the number of their arguments; 0 for any.
CALLS = {"enumerate": 1, "zip": 0, "range": 1}


def use_of(
    node: ast.For, local: set[str], is_builtin: Callable[[str], bool], computes: Callable[[ast.expr], bool]
) -> tuple[str, list[ast.expr], Use, list[str]] | None:
    """How a loop runs, the iterables, how its body uses names, and the captured names; None if it is not uniform.

    Args:
        local: the local names of the function.
        is_builtin: whether a name means the builtin function.
        computes: whether the function that an expression names computes numbers and does nothing else.
    """
    try:
        how, iterables = _iteration(node.iter, is_builtin)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        expected = {"each": 1, "range": 1, "enumerate": 2, "zip": len(iterables)}[how]
        is_tuple = isinstance(node.target, ast.Tuple)
        if not len(names) == len(targets) == expected == len(set(names)) or is_tuple != (how in ("enumerate", "zip")):
            return None
        if node.orelse or not local.issuperset(names):
            return None
        indexed = {"enumerate": 0, "range": 0}.get(how)
        body = _Body(names, indexed, local, computes)
        for statement in node.body:
            body.statement(statement)
        use = body.use()
    except Unfit:
        return None
    return how, iterables, use, list(body.captured)


def _iteration(node: ast.expr, is_builtin: Callable[[str], bool]) -> tuple[str, list[ast.expr]]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in CALLS:
        return "each", [node]
    name, count = node.func.id, CALLS[node.func.id]
    if not is_builtin(name) or node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
        raise Unfit
    if len(node.args) != count and (count or not node.args):
        raise Unfit
    return name, node.args


class _Body:
    """Reads the statements of a loop."""

    def __init__(
        self, names: list[str], indexed: int | None, local: set[str], computes: Callable[[ast.expr], bool]
    ) -> None:
        self._names, self._indexed, self._local, self._computes = names, indexed, local, computes
        self._roles = [""] * len(names)
        self._attributes: dict[tuple[int, str], tuple[bool, bool]] = {}
        self._elements: dict[int, tuple[bool, bool]] = {}
        self._numbers: set[int] = set()
        self._paths: set[tuple[int, tuple[str, ...]]] = set()
        self._assigned: set[str] = set()
        self.captured: dict[str, int] = {}

    def use(self) -> Use:
        """What was found.

        Raises:
            Unfit: nothing is changed, or a name is used in two ways.
        """
        places = [*self._attributes.values(), *self._elements.values()]
        if not any(written for _, written in places) or self._assigned & self.captured.keys():
            raise Unfit
        attributes = [(*key, *found) for key, found in self._attributes.items()]
        elements = [(number, *found) for number, found in self._elements.items()]
        return Use(
            tuple(self._roles),
            tuple(attributes),
            tuple(elements),
            tuple(sorted(self._numbers)),
            tuple(sorted(self._paths)),
        )

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._expression(node.value)
            self._assign(node.targets[0])
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self._name(node.target)
            else:
                self._place(node.target, is_written=False)
            self._expression(node.value)
            self._assign(node.target)
        else:
            raise Unfit

    def _assign(self, target: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            self._place(target, is_written=True)
        elif target.id in self._names or target.id not in self._local or target.id in self.captured:
            raise Unfit
        else:
            self._assigned.add(target.id)

    def _place(self, node: ast.expr, is_written: bool) -> None:
        """The attribute of an object, or the element of a list."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._names:
            position = self._role(node.value.id, "object")
            key = position, node.attr
            self._attributes[key] = _used(self._attributes.get(key), is_written)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and self._is_index(node.slice):
            self._role(self._names[self._indexed or 0], "index")
            number = self._capture(node.value.id)
            self._elements[number] = _used(self._elements.get(number), is_written)
        else:
            raise Unfit

    def _is_index(self, node: Any) -> bool:
        node = getattr(node, "value", node) if type(node).__name__ == "Index" else node
        return self._indexed is not None and isinstance(node, ast.Name) and node.id == self._names[self._indexed]

    def _role(self, name: str, role: str) -> int:
        position = self._names.index(name)
        is_index = position == self._indexed
        if is_index != (role == "index") or self._roles[position] not in ("", role):
            raise Unfit
        self._roles[position] = role
        return position

    def _capture(self, name: str) -> int:
        if name in self._names or name in self._assigned:
            raise Unfit
        return self.captured.setdefault(name, len(self.captured))

    def _name(self, node: ast.Name) -> None:
        if node.id in self._names:
            self._role(node.id, "number")
        elif node.id not in self._assigned:
            self._numbers.add(self._capture(node.id))

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            if type(node.value) not in (int, float):
                raise Unfit
        elif isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.Call):
            if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
                raise Unfit
            if not self._computes(node.func):
                raise Unfit
            for part in node.args:
                self._expression(part)
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare)):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self._expression(inner)
        elif isinstance(node, ast.Attribute) and not self._is_of_object(node):
            self._path(node)
        else:
            self._place(node, is_written=False)

    def _is_of_object(self, node: ast.Attribute) -> bool:
        return isinstance(node.value, ast.Name) and node.value.id in self._names

    def _path(self, node: ast.expr) -> None:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            raise Unfit
        self._paths.add((self._capture(node.id), tuple(attributes)))


def _used(before: tuple[bool, bool] | None, is_written: bool) -> tuple[bool, bool]:
    """Whether a place is read, and whether it is written."""
    is_read, was_written = before or (False, False)
    return is_read or not is_written, was_written or is_written
