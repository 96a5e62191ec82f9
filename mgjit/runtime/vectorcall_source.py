"""The C source of quick calls (vectorcall.py): an object of CPython that is called without a frame of Python.

It takes a call only if everything is exactly as when the step was traced: the arguments have the types and ranges in
`arguments`, the entries of dicts, cells and lists in `facts` are the same objects, `nothing` is empty, and what
`rest()` asks holds, and `look()` as well when it is time by the clock.  Then it copies the numbers in the user's
objects (vectorcall_copies.py).  Arguments that it does not take it offers to
its `siblings`, the quick calls of the same step for other structures.  Whatever else happens is left to `general`, the
generated Python function for the same calls, which starts anew.  So a condition may be too strict, never too lax, and
all errors are those of that function.

Nothing is shared by objects of two steps, and no type by two objects: several interpreters in one process do not meet.
"""

from ..tracing.surroundings.guard import COUNTED, QUICK_SECONDS
from . import vectorcall_copies

SOURCE = (
    f"#define QUICK_SECONDS {QUICK_SECONDS!r}\n#define COUNTED {COUNTED}\n"
    + r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <time.h>
#include <math.h>

#define MOST 32
#define MOST_NUMBERS 1024 /* they are on the stack */
#define MOST_BUFFERS 4
#define MOST_PARTS 32
#ifdef __APPLE__ /* the clock of perf_counter() */
#define CLOCK CLOCK_UPTIME_RAW
#else
#define CLOCK CLOCK_MONOTONIC
#endif

"""
    + vectorcall_copies.SOURCE
    + r"""
typedef struct { long kind; long long low, high; PyObject *thing; } Argument;

/* What a call has taken from its arguments. */
typedef struct {
    double numbers[1 + MOST_NUMBERS];
    Py_ssize_t count, views;
    const void *pointers[MOST_BUFFERS];
    Py_buffer view[MOST_BUFFERS];
} Taken;

/* What a call has to undo where output `verdict` is not 0.0: it returns `undone` then, and was not counted;
   if that is None, it is left to others. */
typedef struct {
    long verdict; /* -1 where nothing is undone */
    long long *counter;
    PyObject *saved, *undone, *kept; /* `saved`: addresses of a copy and of its original, and their length, each */
} Undo;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void (*enter)(void);
    double block; /* the address of the pointer block, as entries expect it */
    Py_ssize_t count, fact_count;
    long pointers, is_single; /* how many buffers the entry takes, and whether numbers are floats for it */
    double *times, *pause; /* when to look, whether calls have gone without; when the pause is over */
    double looked; /* when the clock was last looked at, so many calls were to be counted after, and so many are left */
    long counted, left;
    PyObject *general, *facts, *nothing, *rest, *look, *parts, *kept, *siblings;
    Copies copies;
    Undo undo;
    const double *outputs;
    int form; /* of the result: 'o' the only one of `parts`, 't' a tuple of them, 'l' a list */
    Argument arguments[MOST];
} Call;

#define EACH(DO) DO(general) DO(facts) DO(nothing) DO(rest) DO(look) DO(parts) DO(kept) DO(siblings)

/* A number, rounded if the code has floats; one that is too large for that is not taken. */
static int put(const Call *call, double number, Taken *taken)
{
    if (call->is_single) {
        float rounded = (float)number;
        if (isinf(rounded) && !isinf(number)) return 0;
        ((float *)(taken->numbers + 1))[taken->count++] = rounded;
    } else
        taken->numbers[1 + taken->count++] = number;
    return 1;
}

/* Bytes of a length, each in the range that two bytes of `limits` say, if there are any. */
static int take_bytes(const Argument *one, PyObject *given, Taken *taken)
{
    if (!PyBytes_CheckExact(given) || PyBytes_GET_SIZE(given) != one->low) return 0;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(given);
    const unsigned char *limits = (const unsigned char *)PyBytes_AS_STRING(one->thing);
    for (Py_ssize_t k = 0; 2 * k < PyBytes_GET_SIZE(one->thing); k++)
        if (bytes[k] < limits[2 * k] || bytes[k] > limits[2 * k + 1]) return 0;
    taken->pointers[one->high] = bytes;
    return 1;
}

/* A contiguous buffer of a type, format and shape, which are `thing`. */
static int take_buffer(const Argument *one, PyObject *given, Taken *taken)
{
    PyObject *const *parts = ((PyTupleObject *)one->thing)->ob_item;
    Py_buffer *view = &taken->view[taken->views];
    if ((PyObject *)Py_TYPE(given) != parts[0]) return 0;
    if (PyObject_GetBuffer(given, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    taken->views++; /* to be released, also if it does not fit */
    if (view->format == NULL || strcmp(view->format, PyBytes_AS_STRING(parts[1])) || view->ndim != one->low) return 0;
    for (int k = 0; k < view->ndim; k++)
        if (view->shape[k] != PyLong_AsSsize_t(parts[2 + k])) return 0;
    taken->pointers[one->high] = view->buf;
    return 1;
}

/* Whether a list is one of those to which the step assigns, whose addresses `changed` has in order. */
static int is_changed(PyObject *changed, PyObject *list)
{
    const char *addresses = PyBytes_AS_STRING(changed);
    size_t first = 0, last = (size_t)PyBytes_GET_SIZE(changed) / sizeof list;
    while (first < last) {
        size_t middle = (first + last) / 2, address;
        memcpy(&address, addresses + middle * sizeof address, sizeof address);
        if (address == (size_t)list) return 1;
        if (address < (size_t)list)
            first = middle + 1;
        else
            last = middle;
    }
    return 0;
}

/* Write the numbers of nested lists or tuples of these lengths; returns 0 if they are no such table.  `found` gets how
 * many floats and how many ints there are; `types`, if there are any, say which must be ints, and `limit` how large;
 * none of the lists is one of those to which the step assigns, if `changed` has any. */
static int put_rows(PyObject *rows, PyObject *lengths, Py_ssize_t depth, char **to, Py_ssize_t *found,
                    const char *types, double limit, PyObject *changed)
{
    PyObject *const *items;
    if (PyList_CheckExact(rows)) items = ((PyListObject *)rows)->ob_item;
    else if (PyTuple_CheckExact(rows)) items = ((PyTupleObject *)rows)->ob_item;
    else return 0;
    Py_ssize_t size = Py_SIZE(rows);
    if (size != PyLong_AsSsize_t(PyTuple_GET_ITEM(lengths, depth))) return 0;
    if (changed != NULL && PyList_CheckExact(rows) && is_changed(changed, rows)) return 0;
    int is_last = depth + 1 == PyTuple_GET_SIZE(lengths);
    for (Py_ssize_t k = 0; k < size; k++) {
        if (!is_last) {
            if (!put_rows(items[k], lengths, depth + 1, to, found, types, limit, changed)) return 0;
            continue;
        }
        int is_float = PyFloat_CheckExact(items[k]);
        if (!is_float && !PyLong_CheckExact(items[k])) return 0;
        double number = is_float ? PyFloat_AS_DOUBLE(items[k]) : PyLong_AsDouble(items[k]);
        if (!is_float && number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        if (types != NULL && (is_float == types[found[0] + found[1]] || (!is_float && fabs(number) > limit))) return 0;
        found[!is_float]++;
        memcpy(*to, &number, sizeof number);
        *to += sizeof number;
    }
    return 1;
}

/* Whether a table may have so many floats and ints: not ints alone where floats are meant. */
static int is_table(const Py_ssize_t *found, const char *types, int may_mix)
{
    return types != NULL || (found[0] && (may_mix || !found[1]));
}

/* Whether indices are in their ranges, each of which is a position, the least and the end. */
static int are_in(const double *numbers, PyObject *ranges)
{
    const char *next = PyBytes_AS_STRING(ranges), *end = next + PyBytes_GET_SIZE(ranges);
    for (long long range[3]; next < end; next += sizeof range) {
        memcpy(range, next, sizeof range);
        if (!(numbers[range[0]] >= (double)range[1] && numbers[range[0]] < (double)range[2])) return 0;
    }
    return 1;
}

/* Nested lists or tuples of doubles, of which `thing` has the type, the lengths, types as above, those changed, and the
 * ranges of indices. */
static int take_rows(const Argument *one, PyObject *given, Taken *taken)
{
    PyObject *const *parts = ((PyTupleObject *)one->thing)->ob_item;
    const char *types = parts[2] == Py_None ? NULL : PyBytes_AS_STRING(parts[2]);
    double *first = taken->numbers + 1 + taken->count;
    char *to = (char *)first;
    Py_ssize_t found[2] = {0, 0};
    if ((PyObject *)Py_TYPE(given) != parts[0]) return 0;
    if (!put_rows(given, parts[1], 0, &to, found, types, (double)one->high, parts[3])) return 0;
    taken->count += found[0] + found[1];
    return is_table(found, types, one->low != 0) && are_in(first, parts[4]);
}

/* One argument: 'f' a float, 'i' an int in a range, 'l' a list or 't' a tuple of floats, 'b' bytes, 'a' another buffer,
 * 'r' rows of doubles, 'o' this very object. */
static int take(const Call *call, const Argument *one, PyObject *given, Taken *taken)
{
    Py_ssize_t size;
    PyObject *const *items;
    int overflow;
    long long number;
    switch (one->kind) {
    case 'f':
        return PyFloat_CheckExact(given) && put(call, PyFloat_AS_DOUBLE(given), taken);
    case 'i':
        if (!PyLong_CheckExact(given)) return 0;
        number = PyLong_AsLongLongAndOverflow(given, &overflow);
        return !overflow && number >= one->low && number <= one->high && put(call, (double)number, taken);
    case 'l':
        if (!PyList_CheckExact(given) || is_changed(one->thing, given)) return 0;
        size = PyList_GET_SIZE(given);
        items = ((PyListObject *)given)->ob_item;
        break;
    case 't':
        if (!PyTuple_CheckExact(given)) return 0;
        size = PyTuple_GET_SIZE(given);
        items = ((PyTupleObject *)given)->ob_item;
        break;
    case 'b':
        return take_bytes(one, given, taken);
    case 'a':
        return take_buffer(one, given, taken);
    case 'r':
        return take_rows(one, given, taken);
    default:
        return given == one->thing;
    }
    if (size != one->low) return 0;
    for (Py_ssize_t k = 0; k < size; k++)
        if (!PyFloat_CheckExact(items[k]) || !put(call, PyFloat_AS_DOUBLE(items[k]), taken)) return 0;
    return 1;
}

/* The entry point takes the numbers and as many pointers as there are buffers. */
static double run(const Call *call, const Taken *taken)
{
    typedef const void *P;
    typedef const double *D;
    const P *p = taken->pointers;
    D d = taken->numbers;
    switch (call->pointers) {
    case 0: return ((double (*)(D))call->enter)(d);
    case 1: return ((double (*)(D, P))call->enter)(d, p[0]);
    case 2: return ((double (*)(D, P, P))call->enter)(d, p[0], p[1]);
    case 3: return ((double (*)(D, P, P, P))call->enter)(d, p[0], p[1], p[2]);
    default: return ((double (*)(D, P, P, P, P))call->enter)(d, p[0], p[1], p[2], p[3]);
    }
}

/* Whether a function without arguments returns something true: 1, 0, or -1 for what no Exception is. */
static int asked(PyObject *function)
{
    PyObject *answer = PyObject_CallObject(function, NULL);
    int is_true = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (is_true < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        is_true = 0;
    }
    return is_true;
}

/* Whether it is time to look at what is not compared at each call (Guard._seem_same). */
static int is_due(Call *call)
{
    struct timespec clock;
    double now;
    int is_quick;
    if (call->left > 0 && call->times[0] != 0.0) {
        call->left--;
        call->times[1] = 1.0;
        return 0;
    }
    if (clock_gettime(CLOCK, &clock) != 0) return 1;
    now = (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec;
    is_quick = now - call->looked < QUICK_SECONDS * (double)(call->counted + 1);
    call->looked = now;
    call->counted = call->left = 0;
    if (call->times[0] == 0.0 || (now >= call->times[0] && now >= *call->pause)) return 1;
    call->times[1] = 1.0;
    if (is_quick) call->counted = call->left = COUNTED;
    return 0;
}

/* Whether a list has these elements: the same objects, or floats with the same bits. */
static int has(PyObject *list, PyObject *elements)
{
    PyObject *const *now = ((PyListObject *)list)->ob_item, *const *meant = ((PyTupleObject *)elements)->ob_item;
    if (PyList_GET_SIZE(list) != PyTuple_GET_SIZE(elements)) return 0;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); k++)
        if (now[k] != meant[k]) {
            if (!PyFloat_CheckExact(now[k]) || !PyFloat_CheckExact(meant[k])) return 0;
            double one = PyFloat_AS_DOUBLE(now[k]), other = PyFloat_AS_DOUBLE(meant[k]);
            if (memcmp(&one, &other, sizeof one)) return 0;
        }
    return 1;
}

/* Whether the step may run as it was traced: 1, 0, or -1. */
static int holds(Call *call)
{
    PyObject *const *fact = ((PyTupleObject *)call->facts)->ob_item;
    for (Py_ssize_t k = 0; k < call->fact_count; k++, fact += 3) {
        if (fact[1] == Py_True) {
            if (!has(fact[0], fact[2])) return 0;
            continue;
        }
        PyObject *now = fact[1] == Py_None ? PyCell_GET(fact[0]) : PyDict_GetItemWithError(fact[0], fact[1]);
        if (now != fact[2]) {
            PyErr_Clear();
            return 0;
        }
    }
    if (call->rest != NULL) {
        int is_true = asked(call->rest);
        if (is_true <= 0) return is_true;
    }
    if (call->look != NULL && is_due(call)) {
        int is_true = asked(call->look);
        if (is_true <= 0) return is_true;
    }
    return PyDict_Size(call->nothing) == 0 && PyThreadState_Get()->c_tracefunc == NULL; /* `general` asks who traces */
}

/* `make` as a class of floats without an own __new__ or __init__; else NULL. */
static PyTypeObject *float_subtype(PyObject *make)
{
    PyTypeObject *type = (PyTypeObject *)make;
    if (!PyType_Check(make) || !PyType_IsSubtype(type, &PyFloat_Type)) return NULL;
    return type->tp_new == PyFloat_Type.tp_new && type->tp_init == PyFloat_Type.tp_init ? type : NULL;
}

/* A part of the result, which is (index, what makes it or None, tuple of what is returned instead or None). */
static PyObject *part_of(PyObject *part, double number)
{
    PyObject *plain, *made, *make = PyTuple_GET_ITEM(part, 1), *constant = PyTuple_GET_ITEM(part, 2);
    PyTypeObject *subtype = make == Py_None ? NULL : float_subtype(make);
    if (constant != Py_None) {
        made = PyTuple_GET_ITEM(constant, 0);
        Py_INCREF(made);
        return made;
    }
    if (subtype != NULL) { /* what calling the type would make, without arguments and a plain float in between */
        made = subtype->tp_alloc(subtype, 0);
        if (made != NULL) ((PyFloatObject *)made)->ob_fval = number;
        return made;
    }
    plain = PyFloat_FromDouble(number);
    if (make == Py_None || plain == NULL) return plain;
    made = PyObject_CallFunctionObjArgs(make, plain, NULL);
    Py_DECREF(plain);
    return made;
}

/* What the step returns; the outputs are read before anything is made, which may run code that calls the step. */
static PyObject *result_of(Call *call, double first)
{
    PyObject *const *parts = ((PyTupleObject *)call->parts)->ob_item, *made;
    Py_ssize_t count = PyTuple_GET_SIZE(call->parts);
    double numbers[MOST_PARTS];
    if (call->form == 'o') return part_of(parts[0], first);
    for (Py_ssize_t k = 0; k < count; k++) numbers[k] = call->outputs[PyLong_AsSsize_t(PyTuple_GET_ITEM(parts[k], 0))];
    made = call->form == 'l' ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t k = 0; made != NULL && k < count; k++) {
        PyObject *one = part_of(parts[k], numbers[k]);
        if (one == NULL)
            Py_CLEAR(made);
        else if (call->form == 'l')
            PyList_SET_ITEM(made, k, one);
        else
            PyTuple_SET_ITEM(made, k, one);
    }
    return made;
}

static void release(Taken *taken)
{
    while (taken->views) PyBuffer_Release(&taken->view[--taken->views]);
}

/* Whether the arguments are those of a call; only then they are in `taken`. */
static int takes(Call *call, PyObject *const *given, Py_ssize_t count, Taken *taken)
{
    int is_taken = count == call->count;
    taken->numbers[0] = call->block;
    taken->count = taken->views = 0;
    for (Py_ssize_t k = 0; is_taken && k < count; k++) is_taken = take(call, &call->arguments[k], given[k], taken);
    if (!is_taken) release(taken);
    return is_taken;
}

/* Copy what a call may have to undo, or copy it back. */
static void save(const Undo *undo, int is_back)
{
    size_t *triple = (size_t *)PyBytes_AS_STRING(undo->saved);
    for (Py_ssize_t k = 0; k < PyBytes_GET_SIZE(undo->saved); k += 3 * (Py_ssize_t)sizeof(size_t), triple += 3)
        memcpy((void *)triple[is_back], (const void *)triple[!is_back], triple[2]);
}

/* A call as it was traced; NULL without an error if it is none, and then nothing was done. */
static PyObject *quickly(Call *call, PyObject *const *given, const Taken *taken)
{
    union { double number; unsigned long long bits; } result;
    Copies *copies = &call->copies;
    PyObject *made = NULL;
    int is_done = 1, is_undone = 0;
    if (holds(call) <= 0) return NULL;
    if (copies->count) {
        if (copies->is_busy) return NULL;
        copies->is_busy = 1;
        is_done = fill(copies, given, call->count) > 0;
    }
    if (is_done) {
        if (call->undo.verdict >= 0) save(&call->undo, 0);
        result.number = run(call, taken);
        is_done = result.bits >> 52 != 0xfff || !(result.bits << 12);
        is_undone = is_done && call->undo.verdict >= 0 && call->outputs[call->undo.verdict] != 0.0;
        if (is_undone) {
            save(&call->undo, 1);
            --*call->undo.counter;
        }
    }
    if (copies->count) is_done = is_done && (is_undone || show(copies, given) >= 0);
    if (is_undone) {
        made = call->undo.undone == Py_None ? NULL : call->undo.undone; /* it may be one for another path */
        Py_XINCREF(made);
    } else if (is_done)
        made = result_of(call, result.number);
    if (copies->count) forget(copies); /* last: what was there before may have a finaliser that calls the step */
    return made;
}

static void dealloc(PyObject *self);

static PyObject *called(PyObject *self, PyObject *const *given, size_t flags, PyObject *names)
{
    Call *call = (Call *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    Taken taken;
    int is_path = 1; /* whether none has taken it yet, but for others of its paths */
    for (Py_ssize_t k = -1; is_path && names == NULL && call->siblings && k < PyList_GET_SIZE(call->siblings); k++) {
        PyObject *other = k < 0 ? self : PyList_GET_ITEM(call->siblings, k);
        if ((k >= 0 && other == self) || Py_TYPE(other)->tp_dealloc != dealloc) continue;
        Call *taker = (Call *)other;
        Py_INCREF(other);
        if (takes(taker, given, count, &taken)) {
            PyObject *result = quickly(taker, given, &taken);
            is_path = taker->undo.undone == Py_None;
            release(&taken);
            if (result != NULL || PyErr_Occurred()) {
                Py_DECREF(other);
                return result;
            }
        }
        Py_DECREF(other);
    }
    return PyObject_Vectorcall(call->general, given, flags, names);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Call *call = (Call *)self;
#define DO(name) Py_VISIT(call->name);
    EACH(DO)
#undef DO
    for (Py_ssize_t k = 0; k < call->count; k++) Py_VISIT(call->arguments[k].thing);
    Py_VISIT(call->undo.kept);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear(PyObject *self)
{
    Call *call = (Call *)self;
#define DO(name) Py_CLEAR(call->name);
    EACH(DO)
#undef DO
    for (Py_ssize_t k = 0; k < call->count; k++) Py_CLEAR(call->arguments[k].thing);
    Py_CLEAR(call->undo.saved);
    Py_CLEAR(call->undo.undone);
    Py_CLEAR(call->undo.kept);
    call->copies.count = 0;
    call->copies.node_count = 0;
    PyMem_Free(call->copies.places);
    PyMem_Free(call->copies.nodes);
    call->copies.places = NULL;
    call->copies.nodes = NULL;
    call->count = -2; /* no call has so many arguments */
    call->general = Py_None;
    Py_INCREF(Py_None);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_CLEAR(((Call *)self)->general);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Call, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Call, general), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_members, members},
    {0, NULL},
};
static PyType_Spec spec = {
    "mgjit.QuickCall", sizeof(Call), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots,
};

static PyObject *given_or_null(PyObject *thing)
{
    if (thing == Py_None) return NULL;
    Py_INCREF(thing);
    return thing;
}

/* The floats of a list as the bytes of doubles; None if something else is among them. */
__attribute__((visibility("default"))) PyObject *mgjit_floats(PyObject *list)
{
    if (!PyList_CheckExact(list)) Py_RETURN_NONE;
    Py_ssize_t count = PyList_GET_SIZE(list);
    PyObject *made = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(double));
    if (made == NULL) return NULL;
    char *bytes = PyBytes_AS_STRING(made);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *one = PyList_GET_ITEM(list, k);
        if (!PyFloat_CheckExact(one)) {
            Py_DECREF(made);
            Py_RETURN_NONE;
        }
        double number = PyFloat_AS_DOUBLE(one);
        memcpy(bytes + k * (Py_ssize_t)sizeof number, &number, sizeof number);
    }
    return made;
}

/* The bytes of a table of `size` floats, or ints among them where these may be; None of anything else. */
__attribute__((visibility("default"))) PyObject *mgjit_table(PyObject *given)
{
    PyObject *rows, *kind, *lengths, *kept;
    Py_ssize_t size, found[2] = {0, 0};
    int may_mix;
    double limit;
    if (!PyArg_ParseTuple(given, "OOO!npOd", &rows, &kind, &PyTuple_Type, &lengths, &size, &may_mix, &kept, &limit))
        return NULL;
    const char *types = kept == Py_None ? NULL : PyBytes_AS_STRING(kept);
    if ((PyObject *)Py_TYPE(rows) != kind) Py_RETURN_NONE;
    PyObject *made = PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(double));
    if (made == NULL) return NULL;
    char *to = PyBytes_AS_STRING(made);
    if (put_rows(rows, lengths, 0, &to, found, types, limit, NULL) && is_table(found, types, may_mix)) return made;
    Py_DECREF(made);
    Py_RETURN_NONE;
}

__attribute__((visibility("default"))) PyObject *mgjit_quick_call(PyObject *given)
{
    PyObject *general, *facts, *nothing, *rest, *look, *parts, *kept, *siblings, *owed, *places, *arguments, *undo;
    unsigned long long enter, times, pause, state, gate, outputs, counter;
    int form;
    double block;
    long pointers, is_single;
    if (!PyArg_ParseTuple(given, "OOOOOO!OO!KKKKKKdllCO!O!O!O", &general, &facts, &nothing, &rest, &look, &PyTuple_Type,
                          &parts, &kept, &PyList_Type, &siblings, &enter, &times, &pause, &state, &gate, &outputs,
                          &block, &pointers, &is_single, &form, &PyList_Type, &owed, &PyTuple_Type, &places,
                          &PyTuple_Type, &arguments, &undo))
        return NULL;
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL) return NULL;
    Call *call = PyObject_GC_New(Call, (PyTypeObject *)type);
    Py_DECREF(type); /* the object has one of its own */
    if (call == NULL) return NULL;
    call->vectorcall = called;
    call->enter = (void (*)(void))(size_t)enter;
    call->times = (double *)(size_t)times;
    call->pause = (double *)(size_t)pause;
    call->looked = 0.0;
    call->counted = call->left = 0;
    call->pointers = pointers;
    call->is_single = is_single;
    call->block = block;
    call->count = PyTuple_GET_SIZE(arguments);
    call->fact_count = PyTuple_GET_SIZE(facts) / 3;
    memset(call->arguments, 0, sizeof call->arguments);
#define DO(name) call->name = given_or_null(name);
    EACH(DO)
#undef DO
    memset(&call->undo, 0, sizeof call->undo);
    call->undo.verdict = -1;
    if (undo != Py_None) {
        Undo *one = &call->undo;
        if (!PyArg_ParseTuple(undo, "lKO!OO", &one->verdict, &counter, &PyBytes_Type, &one->saved, &one->undone,
                              &one->kept)) {
            memset(one, 0, sizeof *one);
            call->count = 0;
            Py_DECREF(call);
            return NULL;
        }
        one->counter = (long long *)(size_t)counter;
        Py_INCREF(one->saved);
        Py_INCREF(one->undone);
        Py_INCREF(one->kept);
    }
    call->form = form;
    call->outputs = (const double *)(size_t)outputs;
    memset(&call->copies, 0, sizeof call->copies);
    call->copies.state = (double *)(size_t)state;
    call->copies.gate = (const long long *)(size_t)gate;
    call->copies.owed = owed;
    if (describe(&call->copies, places) < 0) {
        call->count = 0; /* no argument is known yet */
        Py_DECREF(call);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < call->count; k++) {
        Argument *one = &call->arguments[k];
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, k), "CLLO", &kind, &one->low, &one->high, &one->thing)) {
            one->thing = NULL;
            Py_DECREF(call);
            return NULL;
        }
        one->kind = kind;
        Py_INCREF(one->thing);
    }
    PyObject_GC_Track(call);
    return (PyObject *)call;
}
"""
)
