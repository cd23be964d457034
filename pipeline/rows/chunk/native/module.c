/* The module: every kernel by name, called without the interpreter's lock. See call.h. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "signature.h"

enum { VERSION = 2 }; /* as in jit.py: raised whenever a kernel or a signature changes */

typedef struct {
    const Kernel *kernel;
    PyMethodDef method;
    int n_parameters;
    Parameter parameters[MOST_ARGUMENTS];
} Bound;

/* A long of 64 bits is the same as a long long. Marks of the machine's own byte order and of values that are
   not aligned may stand before a type. */
static bool is_type(const Py_buffer *view, const Parameter *of)
{
    const char *format = view->format ? view->format : "B";
    while (*format == '@' || *format == '=' || *format == '^')
        format++;
    char type = format[0];
    if (view->itemsize == 8 && (type == 'l' || type == 'L'))
        type = type == 'l' ? 'q' : 'Q';
    return type == of->type && !format[1] && view->itemsize == of->size && view->ndim == of->dimensions;
}

/* Take an array as it lies in memory; one whose values are not aligned, as they come off a network, as a copy. */
static bool take_array(PyObject *object, const Parameter *of, Py_buffer *view, Argument *argument, void **copy)
{
    int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (of->is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags)) {
        view->obj = NULL;
        return false;
    }
    bool is_aligned = view->len == 0 || (uintptr_t)view->buf % (uintptr_t)of->size == 0;
    if (!is_type(view, of) || (of->is_written && !is_aligned)) {
        PyErr_SetString(PyExc_TypeError, "a kernel was given an array of another type");
        return false;
    }
    argument->data = view->buf;
    if (!is_aligned) {
        *copy = argument->data = PyMem_Malloc((size_t)view->len);
        if (!*copy) {
            PyErr_NoMemory();
            return false;
        }
        memcpy(*copy, view->buf, (size_t)view->len);
    }
    argument->rows = view->shape[0];
    argument->columns = of->dimensions == 2 ? view->shape[1] : 1;
    return true;
}

static bool take_number(PyObject *object, const Parameter *of, Argument *argument)
{
    if (of->type == 'd') {
        argument->real = PyFloat_AsDouble(object);
        return !PyErr_Occurred();
    }
    if (of->type == '?') {
        argument->integer = PyObject_IsTrue(object);
        return argument->integer >= 0;
    }
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return false;
    if (of->type == 'Q')
        argument->natural = PyLong_AsUnsignedLongLong(number);
    else
        argument->integer = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (!PyErr_Occurred() && of->type == 'i' && argument->integer != (int32_t)argument->integer)
        PyErr_SetString(PyExc_OverflowError, "a kernel was given a number beyond 32 bits");
    return !PyErr_Occurred();
}

static PyObject *call(PyObject *capsule, PyObject *const *objects, Py_ssize_t n_objects)
{
    const Bound *bound = PyCapsule_GetPointer(capsule, NULL);
    if (!bound)
        return NULL;
    if (n_objects != bound->n_parameters) {
        PyErr_SetString(PyExc_TypeError, "a kernel was given too few or too many arguments");
        return NULL;
    }
    Py_buffer views[MOST_ARGUMENTS] = {{0}};
    Argument arguments[MOST_ARGUMENTS] = {{0}};
    void *copies[MOST_ARGUMENTS] = {0};
    bool is_taken = true, fits = false;
    for (int at = 0; at < bound->n_parameters && is_taken; at++) {
        const Parameter *of = &bound->parameters[at];
        is_taken = of->dimensions ? take_array(objects[at], of, &views[at], &arguments[at], &copies[at])
                                  : take_number(objects[at], of, &arguments[at]);
    }
    if (is_taken) {
        Function function = bound->kernel->function;
        Py_BEGIN_ALLOW_THREADS
        fits = function(arguments);
        Py_END_ALLOW_THREADS
    }
    for (int at = 0; at < bound->n_parameters; at++) {
        if (copies[at])
            memset(copies[at], 0, (size_t)views[at].len); /* it may be exact */
        PyMem_Free(copies[at]);
        if (views[at].obj)
            PyBuffer_Release(&views[at]);
    }
    if (!is_taken)
        return NULL;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "a kernel was given arrays that do not fit together");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Filled alike whenever the module is loaded, also by another name. */
static Bound BOUND[64];

static int add_kernel(PyObject *module, PyObject *signatures, const Kernel *kernel, Bound *bound)
{
    if (bound == BOUND + sizeof BOUND / sizeof *BOUND) {
        PyErr_SetString(PyExc_SystemError, "there are more kernels than places for them");
        return -1;
    }
    bound->kernel = kernel;
    bound->method = (PyMethodDef){.ml_name = kernel->name,
                                  .ml_meth = (PyCFunction)(void (*)(void))call,
                                  .ml_flags = METH_FASTCALL};
    bound->n_parameters = read_signature(kernel->signature, bound->parameters);
    if (bound->n_parameters < 0) {
        PyErr_SetString(PyExc_SystemError, kernel->name);
        return -1;
    }
    PyObject *capsule = PyCapsule_New(bound, NULL, NULL);
    PyObject *function = capsule ? PyCFunction_NewEx(&bound->method, capsule, NULL) : NULL;
    PyObject *signature = function ? PyUnicode_FromString(kernel->signature) : NULL;
    int failed = !signature || PyDict_SetItemString(signatures, kernel->name, signature) ||
                 PyModule_AddObjectRef(module, kernel->name, function);
    Py_XDECREF(capsule);
    Py_XDECREF(function);
    Py_XDECREF(signature);
    return failed ? -1 : 0;
}

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The inner loops of a release in C; jit.py says which are used.",
    .m_size = -1, /* once in a process */
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    PyObject *signatures = module ? PyDict_New() : NULL;
    /* Those of pages have no twin in Python: Arrow reads what they do not. */
    PyObject *page_signatures = module ? PyDict_New() : NULL;
    const Kernel *tables[] = {CHUNK_KERNELS, VALUE_KERNELS, UNIT_KERNELS, HEADER_KERNELS, PAGE_KERNELS};
    int failed = !signatures || !page_signatures;
    Bound *bound = BOUND;
    for (size_t table = 0; !failed && table < sizeof tables / sizeof *tables; table++)
        for (const Kernel *kernel = tables[table]; !failed && kernel->name; kernel++)
            failed = add_kernel(module, table < 3 ? signatures : page_signatures, kernel, bound++);
    failed = failed || PyModule_AddObjectRef(module, "SIGNATURES", signatures) ||
             PyModule_AddIntConstant(module, "VERSION", VERSION);
    Py_XDECREF(signatures);
    Py_XDECREF(page_signatures);
    if (failed)
        Py_CLEAR(module);
    return module;
}
