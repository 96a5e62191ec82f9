"""The C source of quick calls (vectorcall.py): an object of CPython that is called without a frame of Python.

It takes a call only if everything is exactly as when the step was traced: the arguments have the types and ranges in
`arguments`, the entries of dicts and cells in `facts` are the same objects, `nothing` is empty, and what `rest()` asks
holds.  Whatever else happens is left to `general`, the generated Python function for the same calls, which starts anew.
So a condition may be too strict, never too lax, and all errors are those of that function.

Nothing is shared by two objects, not even their type: several interpreters in one process do not meet.
"""

SOURCE = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define MOST 32

typedef struct { long kind; long long low, high; PyObject *thing; } Argument;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    double (*enter)(const double *);
    double block; /* the address of the pointer block, as entries expect it */
    Py_ssize_t count, inputs, fact_count;
    PyObject *general, *facts, *nothing, *rest, *left, *look, *make, *kept;
    PyTypeObject *subtype; /* `make`, if that is a class of floats that are made like any float */
    Argument arguments[MOST];
} Call;

#define EACH(DO) DO(general) DO(facts) DO(nothing) DO(rest) DO(left) DO(look) DO(make) DO(kept)

/* One argument: 'f' a float, 'i' an int in a range, 'l' a list or 't' a tuple of floats, 'o' this very object. */
static int take(const Argument *one, PyObject *given, double **to)
{
    Py_ssize_t size;
    PyObject *const *items;
    int overflow;
    long long number;
    switch (one->kind) {
    case 'f':
        if (!PyFloat_CheckExact(given)) return 0;
        *(*to)++ = PyFloat_AS_DOUBLE(given);
        return 1;
    case 'i':
        if (!PyLong_CheckExact(given)) return 0;
        number = PyLong_AsLongLongAndOverflow(given, &overflow);
        if (overflow || number < one->low || number > one->high) return 0;
        *(*to)++ = (double)number;
        return 1;
    case 'l':
        if (!PyList_CheckExact(given)) return 0;
        size = PyList_GET_SIZE(given);
        items = ((PyListObject *)given)->ob_item;
        break;
    case 't':
        if (!PyTuple_CheckExact(given)) return 0;
        size = PyTuple_GET_SIZE(given);
        items = ((PyTupleObject *)given)->ob_item;
        break;
    default:
        return given == one->thing;
    }
    if (size != one->low) return 0;
    for (Py_ssize_t k = 0; k < size; k++) {
        if (!PyFloat_CheckExact(items[k])) return 0;
        *(*to)++ = PyFloat_AS_DOUBLE(items[k]);
    }
    return 1;
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

/* Whether the step may run as it was traced: 1, 0, or -1. */
static int holds(Call *call)
{
    PyObject *const *fact = ((PyTupleObject *)call->facts)->ob_item;
    for (Py_ssize_t k = 0; k < call->fact_count; k++, fact += 3) {
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
    if (call->left != NULL) {
        PyObject *content = PyCell_GET(call->left), *less;
        long number = content == NULL ? -1 : PyLong_AsLong(content);
        if ((number == -1 && PyErr_Occurred()) || (less = PyLong_FromLong(number - 1)) == NULL) {
            PyErr_Clear();
            return 0;
        }
        PyCell_Set(call->left, less);
        Py_DECREF(less);
        if (number <= 0) {
            int is_true = asked(call->look);
            if (is_true <= 0) return is_true;
        }
    }
    return PyDict_Size(call->nothing) == 0;
}

/* A number as the step returns it. */
static PyObject *result_of(Call *call, double number)
{
    PyObject *plain, *made;
    if (call->subtype != NULL) { /* what calling the type would make, without arguments and a plain float in between */
        made = call->subtype->tp_alloc(call->subtype, 0);
        if (made != NULL) ((PyFloatObject *)made)->ob_fval = number;
        return made;
    }
    plain = PyFloat_FromDouble(number);
    if (call->make == NULL || plain == NULL) return plain;
    made = PyObject_CallFunctionObjArgs(call->make, plain, NULL);
    Py_DECREF(plain);
    return made;
}

static PyObject *called(PyObject *self, PyObject *const *given, size_t flags, PyObject *names)
{
    Call *call = (Call *)self;
    double numbers[1 + MOST], *to = numbers;
    union { double number; unsigned long long bits; } result;
    Py_ssize_t k = -1;
    if (names == NULL && PyVectorcall_NARGS(flags) == call->count) {
        *to++ = call->block;
        for (k = 0; k < call->count && take(&call->arguments[k], given[k], &to); k++);
    }
    if (k == call->count) {
        int is_same = holds(call);
        if (is_same < 0) return NULL;
        if (is_same) {
            result.number = call->enter(numbers);
            if (result.bits >> 52 != 0xfff || !(result.bits << 12)) return result_of(call, result.number);
        }
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
    call->subtype = NULL;
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

/* `make` as a class of floats without an own __new__ or __init__; else NULL. */
static PyTypeObject *float_subtype(PyObject *make)
{
    PyTypeObject *type = (PyTypeObject *)make;
    if (make == NULL || !PyType_Check(make) || !PyType_IsSubtype(type, &PyFloat_Type)) return NULL;
    return type->tp_new == PyFloat_Type.tp_new && type->tp_init == PyFloat_Type.tp_init ? type : NULL;
}

static PyObject *given_or_null(PyObject *thing)
{
    if (thing == Py_None) return NULL;
    Py_INCREF(thing);
    return thing;
}

__attribute__((visibility("default"))) PyObject *mgjit_quick_call(PyObject *parts)
{
    PyObject *general, *facts, *nothing, *rest, *left, *look, *make, *kept, *arguments;
    unsigned long long enter;
    double block;
    if (!PyArg_ParseTuple(parts, "OOOOOOOOKdO!", &general, &facts, &nothing, &rest, &left, &look, &make, &kept, &enter,
                          &block, &PyTuple_Type, &arguments))
        return NULL;
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL) return NULL;
    Call *call = PyObject_GC_New(Call, (PyTypeObject *)type);
    Py_DECREF(type); /* the object has one of its own */
    if (call == NULL) return NULL;
    call->vectorcall = called;
    call->enter = (double (*)(const double *))(size_t)enter;
    call->block = block;
    call->count = PyTuple_GET_SIZE(arguments);
    call->fact_count = PyTuple_GET_SIZE(facts) / 3;
    memset(call->arguments, 0, sizeof call->arguments);
#define DO(name) call->name = given_or_null(name);
    EACH(DO)
#undef DO
    call->subtype = float_subtype(call->make);
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
