"""What quick calls (vectorcall.py) copy in C between the user's objects and a State: numbers and lists of them.

The generated Python functions of copies.py copy everything; the C code copies what most small steps have, in a tenth
of the time:

1. `described` tells where each number or list of floats or ints lies: in a variable, an entry of a dict or an attribute
   that Python reads and writes itself, or in a list or tuple that lies there; and nothing if one is of another kind.
2. `fill` looks up each place and copies what is there; it does nothing if something is not exactly of the type and
   length that it was.  Lists that the step makes are made before that: making one may collect garbage, and so run code
   of the user's.
3. The kernel runs.
4. `show` puts what the step has assigned into the same objects.  A number whose bits have not changed is left alone.
5. What the step builds anew (built.py) is described as nodes, each behind those that it is made of.  `fill` makes empty
   containers of them, `show` puts into these what belongs there.  What was there before goes when all is done.

From 2 to 4 no Python code runs, and the GIL is held; so nothing is ever owed, as it may be in copies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..memory.live import raw_attributes
from ..tracing.call.results import CompositeResult, ConstantResult, OutputResult, ResultTree, integer
from ..tracing.copies.built import Built, ToldResult
from ..tracing.copies.copies import Copied, Copies
from ..tracing.copies.placewriter import lists_on_their_own
from ..tracing.surroundings.places import Attribute, Element, Entry, Place, Variable

#: So many lists are compared with each other, since two of them may have become one.
_MOST_LISTS = 32

SOURCE = r"""
/* What is built: 'n' a number, 'i' an int, 'm' an int or a float, 'b' a bool, 'c' a constant, 'g' an argument, 'r' a
 * list of numbers in a row, 'l' a list, 't' a tuple, 'd' a dict of nodes. */
typedef struct {
    int kind;
    Py_ssize_t first, count; /* of numbers: where they are in the state; of an argument: which one it is */
    PyObject *thing, *keys;  /* the constant, or the numbers of the nodes inside */
    PyObject *made;          /* only during a call, and owned then */
} Node;

/* One number, or one list of floats or of ints.  Kinds of holders: 'd' a dict, 'c' a cell, 'a' an object whose
 * attribute is meant, 'r' one whose attributes are looked up in its own dict, past its class, 'e' a list. */
typedef struct {
    int kind, is_assigned, is_replaced, is_own; /* is_own: another list may lie in this very place */
    int was_int, is_int;
    Py_ssize_t offset, size; /* in the state; the size of a single number is 0 */
    long long limit;         /* of ints */
    Py_ssize_t node;         /* that is put there, if it is not negative */
    PyObject *holder, *name, *path, *chosen; /* path: index and length of each list in between; chosen: None or bytes */
    /* Only during a call, and owned then: the list in which the place is, what is there, and the list that will be. */
    PyObject *around, *now, *made;
} Place;

typedef struct {
    Py_ssize_t count;
    double *state;
    const long long *gate; /* other calls of the step are under way unless it is 0 */
    int is_busy;           /* a call is, of which this one is a part */
    PyObject *owed;        /* its number is negative unless a call was interrupted (copies.py) */
    Place *places;
    Py_ssize_t node_count;
    Node *nodes;
} Copies;

/* Look up what lies at a place, and the list or tuple that has it, if one does; 0 if nothing does. */
static int look_up(Place *place)
{
    PyObject *now, *attributes = place->kind == 'r' ? PyObject_GenericGetDict(place->holder, NULL) : place->holder;
    if (attributes == NULL) return 0;
    if (place->kind == 'a')
        now = PyObject_GetAttr(place->holder, place->name);
    else if (place->kind == 'e') {
        Py_ssize_t index = PyLong_AsSsize_t(place->name);
        now = index < PyList_GET_SIZE(place->holder) ? PyList_GET_ITEM(place->holder, index) : NULL;
        Py_XINCREF(now);
    } else {
        now = place->kind == 'c' ? PyCell_GET(place->holder) : PyDict_GetItemWithError(attributes, place->name);
        Py_XINCREF(now);
    }
    place->now = now;
    if (place->kind == 'r') Py_DECREF(attributes);
    for (Py_ssize_t k = 0; place->now != NULL && k < PyTuple_GET_SIZE(place->path); k += 2) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(place->path, k));
        Py_XDECREF(place->around);
        place->around = now = place->now;
        place->now = NULL;
        if (!PyList_CheckExact(now) && !PyTuple_CheckExact(now)) return 0;
        if (Py_SIZE(now) != PyLong_AsSsize_t(PyTuple_GET_ITEM(place->path, k + 1))) return 0;
        place->now = PyList_CheckExact(now) ? PyList_GET_ITEM(now, index) : PyTuple_GET_ITEM(now, index);
        Py_INCREF(place->now);
    }
    return place->now != NULL;
}

/* A number of the type that is expected at a place, in range. */
static int number_of(const Place *place, PyObject *now, double *to)
{
    int overflow;
    if (!place->was_int) {
        if (!PyFloat_CheckExact(now)) return 0;
        *to = PyFloat_AS_DOUBLE(now);
        return 1;
    }
    if (!PyLong_CheckExact(now)) return 0;
    long long number = PyLong_AsLongLongAndOverflow(now, &overflow);
    *to = (double)number;
    return !overflow && number >= -place->limit && number <= place->limit;
}

/* Copy in what is at a place; 0 if it is something else than it was. */
static int fill_one(Place *place, double *to)
{
    if (!look_up(place)) return 0;
    if (place->node >= 0) return 1;
    PyObject *now = place->now;
    if (place->is_assigned && (place->size == 0 || place->is_replaced) && place->around != NULL &&
        !PyList_CheckExact(place->around))
        return 0;
    if (place->size == 0) return number_of(place, now, to);
    if (!PyList_CheckExact(now) || PyList_GET_SIZE(now) != place->size) return 0;
    for (Py_ssize_t k = 0; k < place->size; k++)
        if (!number_of(place, PyList_GET_ITEM(now, k), to + k)) return 0;
    return 1;
}

/* Let go of what belongs to a call. */
static void forget(Copies *copies)
{
    for (Py_ssize_t k = 0; k < copies->count; k++) {
        Py_CLEAR(copies->places[k].around);
        Py_CLEAR(copies->places[k].now);
        Py_CLEAR(copies->places[k].made);
    }
    for (Py_ssize_t k = 0; k < copies->node_count; k++) Py_CLEAR(copies->nodes[k].made);
    copies->is_busy = 0;
}

/* Whether a place has a list that is also an argument, or lies at another place. */
static int is_shared(const Copies *copies, const Place *place, PyObject *const *given, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++)
        if (given[k] == place->now) return 1;
    for (const Place *other = copies->places; other < place; other++)
        if (other->is_own && other->now == place->now) return 1;
    return 0;
}

/* An empty container for what will be in it; NULL without an error for what is no container. */
static PyObject *empty(const Node *node)
{
    switch (node->kind) {
    case 'r': return PyList_New(node->count);
    case 'l': return PyList_New(PyTuple_GET_SIZE(node->thing));
    case 't': return PyTuple_New(PyTuple_GET_SIZE(node->thing));
    case 'd': return PyDict_New();
    default: return NULL;
    }
}

/* 1, 0 if this is no call for quick copying, -1 after an error; nothing was changed but the state. */
static int fill(Copies *copies, PyObject *const *given, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < copies->count; k++) {
        Place *place = &copies->places[k];
        if (place->is_replaced && (place->made = PyList_New(place->size)) == NULL) return -1;
    }
    for (Py_ssize_t k = 0; k < copies->node_count; k++)
        if ((copies->nodes[k].made = empty(&copies->nodes[k])) == NULL && PyErr_Occurred()) return -1;
    if (*copies->gate || PyLong_AsLong(PyList_GET_ITEM(copies->owed, 0)) >= 0) return 0;
    for (Py_ssize_t k = 0; k < copies->count; k++) {
        Place *place = &copies->places[k];
        if (!fill_one(place, copies->state + place->offset)) {
            PyErr_Clear();
            return 0;
        }
        if (place->is_own && is_shared(copies, place, given, count)) return 0;
    }
    return 1;
}

/* Whether an object is a float with the bits of this number. */
static int is_same(PyObject *one, double number)
{
    double other;
    if (!PyFloat_CheckExact(one)) return 0;
    other = PyFloat_AS_DOUBLE(one);
    return !memcmp(&other, &number, sizeof number);
}

/* A number as the step leaves it; infinities and nans are floats in any case. */
static PyObject *made_of(const Place *place, double number)
{
    return place->is_int && isfinite(number) ? PyLong_FromDouble(number) : PyFloat_FromDouble(number);
}

/* Put a number or list, whose reference is stolen, where another one was; -1 if that cannot be. */
static int put_there(Place *place, PyObject *made)
{
    int is_wrong = 0;
    if (made == NULL) return -1;
    if (place->around != NULL) {
        Py_ssize_t last = PyTuple_GET_SIZE(place->path) - 2;
        return PyList_SetItem(place->around, PyLong_AsSsize_t(PyTuple_GET_ITEM(place->path, last)), made);
    }
    if (place->kind == 'e') return PyList_SetItem(place->holder, PyLong_AsSsize_t(place->name), made);
    if (place->kind == 'c')
        is_wrong = PyCell_Set(place->holder, made);
    else if (place->kind == 'd')
        is_wrong = PyDict_SetItem(place->holder, place->name, made);
    else if (place->kind == 'a')
        is_wrong = PyObject_SetAttr(place->holder, place->name, made);
    else {
        PyObject *attributes = PyObject_GenericGetDict(place->holder, NULL);
        is_wrong = attributes == NULL ? -1 : PyDict_SetItem(attributes, place->name, made);
        Py_XDECREF(attributes);
    }
    Py_DECREF(made);
    return is_wrong;
}

static int show_one(Place *place, const double *from, const Node *nodes)
{
    if (place->node >= 0) {
        Py_INCREF(nodes[place->node].made);
        return put_there(place, nodes[place->node].made);
    }
    if (place->size == 0)
        return !place->is_int && is_same(place->now, *from) ? 0 : put_there(place, made_of(place, *from));
    PyObject *list = place->is_replaced ? place->made : place->now;
    const char *chosen = place->chosen == Py_None ? NULL : PyBytes_AS_STRING(place->chosen);
    for (Py_ssize_t k = 0; k < place->size; k++) {
        PyObject *old = PyList_GET_ITEM(list, k);
        if ((chosen != NULL && !chosen[k]) || (old != NULL && !place->is_int && is_same(old, from[k]))) continue;
        PyObject *number = made_of(place, from[k]);
        if (number == NULL) return -1;
        PyList_SET_ITEM(list, k, number);
        Py_XDECREF(old);
    }
    if (!place->is_replaced) return 0;
    place->made = NULL;
    return put_there(place, list);
}

/* A number, a constant or an argument. */
static PyObject *single(const Node *node, double number, PyObject *const *given)
{
    PyObject *found = node->kind == 'g' ? given[node->first] : node->thing;
    switch (node->kind) {
    case 'n': return PyFloat_FromDouble(number);
    case 'i': return PyLong_FromDouble(number);
    case 'm': return isfinite(number) ? PyLong_FromDouble(number) : PyFloat_FromDouble(number);
    case 'b': return PyBool_FromLong(number != 0.0);
    default: Py_INCREF(found); return found;
    }
}

/* Put into a container what belongs there; -1 after an error. */
static int put_inside(Node *node, const Node *nodes, const double *state)
{
    PyObject *made = node->made;
    Py_ssize_t count = node->kind == 'r' ? node->count : PyTuple_GET_SIZE(node->thing);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *one = NULL;
        if (node->kind == 'r')
            one = PyFloat_FromDouble(state[node->first + k]);
        else {
            one = nodes[PyLong_AsSsize_t(PyTuple_GET_ITEM(node->thing, k))].made;
            Py_INCREF(one);
        }
        if (one == NULL) return -1;
        if (node->kind == 't')
            PyTuple_SET_ITEM(made, k, one);
        else if (node->kind != 'd')
            PyList_SET_ITEM(made, k, one);
        else {
            int is_wrong = PyDict_SetItem(made, PyTuple_GET_ITEM(node->keys, k), one);
            Py_DECREF(one);
            if (is_wrong) return -1;
        }
    }
    return 0;
}

/* -1 after an error, which can only be one of memory. */
static int show(Copies *copies, PyObject *const *given)
{
    for (Py_ssize_t k = 0; k < copies->node_count; k++) {
        Node *node = &copies->nodes[k];
        if (node->made != NULL && put_inside(node, copies->nodes, copies->state) < 0) return -1;
        if (node->made == NULL && (node->made = single(node, copies->state[node->first], given)) == NULL) return -1;
    }
    for (Py_ssize_t k = 0; k < copies->count; k++) {
        Place *place = &copies->places[k];
        if (place->is_assigned && show_one(place, copies->state + place->offset, copies->nodes) < 0) return -1;
    }
    return 0;
}

/* From what Python describes; -1 after an error.  What this refers to, the description keeps. */
static int describe(Copies *copies, PyObject *described)
{
    PyObject *parts, *nodes;
    if (!PyArg_ParseTuple(described, "O!O!", &PyTuple_Type, &parts, &PyTuple_Type, &nodes)) return -1;
    if (PyTuple_GET_SIZE(parts) == 0) return 0;
    copies->places = PyMem_Calloc((size_t)PyTuple_GET_SIZE(parts), sizeof(Place));
    copies->nodes = PyMem_Calloc((size_t)PyTuple_GET_SIZE(nodes) + 1, sizeof(Node));
    if (copies->places == NULL || copies->nodes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(nodes); k++) {
        Node *one = &copies->nodes[k];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(nodes, k), "CnnOO", &one->kind, &one->first, &one->count, &one->thing,
                              &one->keys))
            return -1;
    }
    copies->node_count = PyTuple_GET_SIZE(nodes);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(parts); k++) {
        Place *one = &copies->places[k];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parts, k), "COOOOnnLniiiii", &one->kind, &one->holder, &one->name,
                              &one->path, &one->chosen, &one->offset, &one->size, &one->limit, &one->node,
                              &one->is_assigned, &one->is_replaced, &one->is_own, &one->was_int, &one->is_int))
            return -1;
    }
    copies->count = PyTuple_GET_SIZE(parts);
    return 0;
}
"""


Described = tuple[tuple[Any, ...], tuple[Any, ...]]


def described(copies: Copies | None) -> Described | None:
    """What `describe` takes of all that a kernel copies, and builds; None if something is of another kind."""
    if copies is None:
        return (), ()
    own = {id(part) for part in lists_on_their_own(copies.parts)}
    is_simple = not copies.inputs and not copies.told.kept and copies.numbers.typecode == "d"
    if not is_simple or len(own) > _MOST_LISTS:
        return None
    found = [_described(part, id(part) in own) for part in copies.parts]
    nodes = _Nodes(copies.built)
    found += [_of_built(place, nodes.number(tree)) for place, tree in zip(copies.built.places, copies.built.trees)]
    return None if None in found or not nodes.are_usual else (tuple(found), tuple(nodes.found))


def _described(part: Copied, is_own: bool) -> tuple[Any, ...] | None:
    ints = [bool(found) for found in (part.given_integers, part.integers)]
    are_alike = all(len(found) in (0, part.count) for found in (part.given_integers, part.integers))
    root = _root(part.place)
    if part.mixed or part.numpy_floats or part.allowed or root is None or not are_alike:
        return None
    chosen = None if part.positions is None else bytes([k in part.positions for k in range(part.size)])
    flags = part.assigned, part.replaced, is_own, *ints
    return (*root, chosen, part.offset, part.size, part.limit, -1, *map(int, flags))


def _of_built(place: Place, node: int) -> tuple[Any, ...] | None:
    root = _root(place)
    return None if root is None else (*root, None, 0, 0, 0, node, 1, 0, 0, 0, 0)


class _Nodes:
    """The nodes of trees, each behind those inside of it, and once if it has several places.

    Attributes:
        found: the nodes. are_usual: whether C can make them all.
    """

    def __init__(self, built: Built) -> None:
        self.found: list[tuple[Any, ...]] = []
        self.are_usual = not (built.lengths or built.carried)
        self._given = built.given
        self._numbers: dict[int, int] = {}

    def number(self, tree: ResultTree) -> int:
        """The number of a node."""
        if id(tree) not in self._numbers:
            self.found.append(self._node(tree))  # behind those inside of it
            self._numbers[id(tree)] = len(self.found) - 1
        return self._numbers[id(tree)]

    def _node(self, tree: ResultTree) -> tuple[Any, ...]:
        if type(tree) is OutputResult and tree.make in _MAKERS:
            return _MAKERS[tree.make], tree.index, 1, None, None
        if type(tree) is ConstantResult:
            return "c", 0, 0, tree.returned, None
        if type(tree) is ToldResult and not self._given[tree.number].steps:
            return "g", self._given[tree.number].argument, 0, None, None
        if type(tree) is CompositeResult and (tree.make in (list, tuple) or tree.keys is not None):
            row = tree.row() if tree.make is list else None
            if row is not None and row[1] is None:
                return "r", row[0][0], row[0][1] - row[0][0], None, None
            inside = tuple(map(self.number, tree.parts))
            return "d" if tree.keys is not None else tree.make.__name__[0], 0, 0, inside, tree.keys
        self.are_usual = False
        return "c", 0, 0, None, None


#: How a number is made of one in the State.
_MAKERS: dict[Any, str] = {None: "n", int: "i", integer: "m", bool: "b"}


def _root(place: Place) -> tuple[str, Any, Any, Sequence[int]] | None:
    """The kind of what holds a place, this holder, the name there, and index and length of each list in between."""
    path: list[int] = []
    while isinstance(place, Element):
        path[:0] = place.name, place.siblings
        place = place.holder
    if isinstance(place, Entry) and type(place.holder) is list:
        return "e", place.holder, place.name, tuple(path)
    if isinstance(place, Entry) and type(place.holder) is dict:
        return "d", place.holder, place.name, tuple(path)
    if isinstance(place, Variable):
        return "c", place.holder, place.name, tuple(path)
    if isinstance(place, Attribute) and place.is_plain():
        return "a", place.holder, place.name, tuple(path)
    if isinstance(place, Attribute) and not place.field.is_slot and type(raw_attributes(place.holder)) is dict:
        return "r", place.holder, place.name, tuple(path)
    return None
