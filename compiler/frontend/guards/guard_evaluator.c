/* Evaluator: a callable that runs a table of guard steps, then the body, or gives `miss`.
 *
 * The steps are numbered in steps.py, which says what each of them means (the OP_ names are written before this
 * text).  Rules kept here: the interpreter lock is held throughout; everything fetched is
 * owned by its slot until the call ends, since a check may run Python that drops what it came from; whatever has no
 * quick answer here is asked of the step's Python check.
 */
#include <stdint.h>
#include <string.h>

typedef int32_t (*NumberOf)(void *, int32_t *);
typedef int32_t (*LengthOf)(void *, int64_t *);
typedef int32_t (*NumbersOf)(void *, int64_t **);
typedef int8_t (*TruthOf)(void *);

/* Where a tensor object keeps the pointer to its data, where that keeps its dispatch keys, and torch's C interface. */
static struct {
  Py_ssize_t tensor, keys;
  NumberOf dtype, device_type, device_index;
  LengthOf dimensions;
  NumbersOf sizes, strides;
  TruthOf requires_grad, leaf; /* NULL: ask the getters below */
  PyGetSetDef *requires_grad_getter, *leaf_getter;
} TORCH;

typedef struct {
  uint64_t keys;
  int32_t dtype, device_type, device_index;
  int8_t requires_grad, leaf; /* leaf: -1 for any */
  Py_ssize_t dimensions;
  int64_t numbers[]; /* the sizes, then the strides; -1 for any */
} Metadata;

typedef struct {
  int op;
  Py_ssize_t value, result;
  PyObject *operand, *extra;
  Metadata *metadata;
} Step;

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject *body, *miss, *errors;
  Py_ssize_t arguments, slots, passed;
  Py_ssize_t *pass;
  Py_ssize_t count;
  Step *steps;
} Evaluator;

enum { NO, YES, FAILED };

static int answer(PyObject *given) { /* steals; may be NULL */
  int truth;
  if (!given) return FAILED;
  if (given == Py_True || given == Py_False) truth = given == Py_True;
  else truth = PyObject_IsTrue(given);
  Py_DECREF(given);
  return truth < 0 ? FAILED : truth;
}

static int same(PyObject *left, PyObject *right) { return answer(PyObject_RichCompare(left, right, Py_EQ)); }

/* others: None, or a tuple of slots. */
static int ask_python(PyObject *function, PyObject *value, PyObject *others, PyObject **slots) {
  Py_ssize_t count = others == Py_None ? 0 : PyTuple_GET_SIZE(others);
  PyObject *few[9], **arguments = few;
  if (count + 2 > 9 && !(arguments = PyMem_Malloc((count + 2) * sizeof *arguments))) {
    PyErr_NoMemory();
    return FAILED;
  }
  arguments[1] = value;
  for (Py_ssize_t i = 0; i < count; i++) arguments[i + 2] = slots[PyLong_AsSsize_t(PyTuple_GET_ITEM(others, i))];
  int found = answer(
      PyObject_Vectorcall(function, arguments + 1, (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL));
  if (arguments != few) PyMem_Free(arguments);
  return found;
}

static PyObject *call_without_arguments(PyObject *function) {
  if (PyCFunction_CheckExact(function) && PyCFunction_GET_FLAGS(function) == METH_NOARGS)
    return PyCFunction_GET_FUNCTION(function)(PyCFunction_GET_SELF(function), NULL);
  return PyObject_CallNoArgs(function);
}

static PyObject *dict_item(PyObject *dict, PyObject *key) {
  PyObject *found = PyDict_GetItemWithError(dict, key);
  if (found) return Py_NewRef(found);
  if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
  return NULL;
}

static PyObject *item(PyObject *holder, PyObject *key) {
  if (PyDict_CheckExact(holder)) return dict_item(holder, key);
  if (PyLong_CheckExact(key) && (PyList_CheckExact(holder) || PyTuple_CheckExact(holder))) {
    Py_ssize_t position = PyLong_AsSsize_t(key);
    if (position == -1 && PyErr_Occurred()) return NULL;
    if (position >= 0 && position < Py_SIZE(holder))
      return Py_NewRef(PyList_CheckExact(holder) ? PyList_GET_ITEM(holder, position) : PyTuple_GET_ITEM(holder, position));
  }
  return PyObject_GetItem(holder, key);
}

static int contains(PyObject *holder, PyObject *key) {
  int found = PyDict_CheckExact(holder) ? PyDict_Contains(holder, key) : PySequence_Contains(holder, key);
  return found < 0 ? FAILED : found;
}

static int has_length(PyObject *value, Py_ssize_t expected) {
  Py_ssize_t length = PyObject_Size(value);
  return length < 0 ? FAILED : length == expected;
}

static int has_keys(Step *step, PyObject *value) { /* extra: the keys, all exact strings */
  PyObject *key, *item_, *keys = step->extra;
  Py_ssize_t position = 0, i = 0;
  if (!PyDict_CheckExact(value)) return ask_python(step->operand, value, Py_None, NULL);
  if (PyDict_GET_SIZE(value) != PyTuple_GET_SIZE(keys)) return NO;
  for (; PyDict_Next(value, &position, &key, &item_); i++) {
    PyObject *expected = PyTuple_GET_ITEM(keys, i);
    if (key == expected) continue;
    if (!PyUnicode_CheckExact(key)) return ask_python(step->operand, value, Py_None, NULL);
    if (PyUnicode_Compare(key, expected)) return NO;
  }
  return YES;
}

static int has_attribute(PyObject *value, PyObject *name) {
  PyObject *found = PyObject_GetAttr(value, name);
  if (found) {
    Py_DECREF(found);
    return YES;
  }
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return FAILED;
  PyErr_Clear();
  return NO;
}

static int has_code(PyObject *value, PyObject *code) {
  if (PyFunction_Check(value) && PyFunction_GET_CODE(value) == code) return YES;
  PyObject *found = PyObject_GetAttrString(value, "__code__");
  if (!found) return FAILED;
  int alike = same(found, code);
  Py_DECREF(found);
  return alike;
}

/* Borrowed, or NULL: what the classes after one in the MRO have under a name; *known is 0 if that one is not in it. */
static PyObject *member_behind(PyTypeObject *kind, PyObject *after, PyObject *name, int *known) {
  PyObject *found = NULL;
  *known = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kind->tp_mro) && !found; i++) {
    PyObject *base = PyTuple_GET_ITEM(kind->tp_mro, i);
    if (*known) {
#if PY_VERSION_HEX >= 0x030C0000
      PyObject *names = PyType_GetDict((PyTypeObject *)base);
      found = PyDict_GetItemWithError(names, name);
      Py_DECREF(names);
#else
      found = PyDict_GetItemWithError(((PyTypeObject *)base)->tp_dict, name);
#endif
    }
    if (base == after) *known = 1;
  }
  return found;
}

/* names: name or (name, after); how: as in the step; found: borrowed, what is there. */
static int has_member(PyTypeObject *kind, PyObject *names, Py_ssize_t how, PyObject *expected, PyObject **found) {
  int known = 1;
  *found = PyTuple_Check(names) ? member_behind(kind, PyTuple_GET_ITEM(names, 1), PyTuple_GET_ITEM(names, 0), &known)
                                : _PyType_Lookup(kind, names);
  if (!known) return NO;
  if (how == 1) return *found == NULL;
  if (how == 2)
    return *found && *found != Py_None && *found != Py_True && *found != Py_False && !Py_TYPE(*found)->tp_descr_get;
  return *found == expected;
}

/* CPython's number for what a class and its bases hold: another one after every change of them; 0: none is given. */
static unsigned int version_of(PyTypeObject *kind) {
#if PY_VERSION_HEX < 0x030D0000
  if (!(kind->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return kind->tp_version_tag;
}

static int has_members(Step *step) { /* operand: the class; extra: rows of has_member; result: the version that had them */
  PyTypeObject *kind = (PyTypeObject *)step->operand;
  unsigned int version = version_of(kind);
  int settled = 1;
  if (version && (Py_ssize_t)version == step->result) return YES;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(step->extra); i++) {
    PyObject *found, *row = PyTuple_GET_ITEM(step->extra, i);
    Py_ssize_t how = PyLong_AsSsize_t(PyTuple_GET_ITEM(row, 1));
    if (has_member(kind, PyTuple_GET_ITEM(row, 0), how, PyTuple_GET_ITEM(row, 2), &found) != YES) return NO;
    if (how == 2 && Py_TYPE(found)->tp_flags & Py_TPFLAGS_HEAPTYPE) settled = 0; /* it may become a descriptor */
  }
  step->result = settled ? (Py_ssize_t)version_of(kind) : 0;
  return YES;
}

static int equals(PyObject *value, PyObject *expected) {
  if (Py_TYPE(value) != Py_TYPE(expected)) return NO;
  if (value == expected && (PyLong_CheckExact(value) || PyUnicode_CheckExact(value))) return YES;
  if (!PyFloat_CheckExact(value)) return same(value, expected);
  double left = PyFloat_AS_DOUBLE(value), right = PyFloat_AS_DOUBLE(expected);
  if (right != right) return left != left;
  return memcmp(&left, &right, sizeof left) == 0; /* tells -0.0 from 0.0 */
}

static int holds_nothing(PyObject *holder, PyObject *names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject *found = item(holder, PyTuple_GET_ITEM(names, i));
    if (!found) return FAILED;
    int full = PyDict_CheckExact(found) ? PyDict_GET_SIZE(found) != 0 : PyObject_IsTrue(found);
    Py_DECREF(found);
    if (full < 0) return FAILED;
    if (full) return NO;
  }
  return YES;
}

static int by_address(const void *left, const void *right) {
  uintptr_t a = *(const uintptr_t *)left, b = *(const uintptr_t *)right;
  return (a > b) - (a < b);
}

static int are_distinct(PyObject *positions, PyObject **slots) {
  Py_ssize_t count = PyTuple_GET_SIZE(positions);
  PyObject **found = PyMem_Malloc(count * sizeof *found);
  int distinct = YES;
  if (!found) {
    PyErr_NoMemory();
    return FAILED;
  }
  for (Py_ssize_t i = 0; i < count; i++) found[i] = slots[PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i))];
  qsort(found, count, sizeof *found, by_address);
  for (Py_ssize_t i = 1; i < count; i++)
    if (found[i] == found[i - 1]) distinct = NO;
  PyMem_Free(found);
  return distinct;
}

static int truth_of(TruthOf function, PyGetSetDef *get, PyObject *tensor, void *where, int expected) {
  if (function) return (function(where) != 0) == expected;
  PyObject *found = get->get(tensor, get->closure);
  if (!found) return FAILED;
  Py_DECREF(found);
  return (found == Py_True) == expected;
}

static int differs(int64_t *found, int64_t *expected, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++)
    if (found[i] != expected[i] && expected[i] != -1) return 1;
  return 0;
}

static int is_tensor(Step *step, PyObject *value) { /* extra: the exact type, whose objects TORCH describes */
  Metadata *expected = step->metadata;
  if ((PyObject *)Py_TYPE(value) != step->extra) return NO;
  void **handle = (void **)((char *)value + TORCH.tensor);
  if (!*handle || *(uint64_t *)((char *)*handle + TORCH.keys) != expected->keys)
    return ask_python(step->operand, value, Py_None, NULL);
  int32_t dtype, device_type, device_index;
  int64_t dimensions, *sizes, *strides;
  if (TORCH.dtype(handle, &dtype) || TORCH.device_type(handle, &device_type) ||
      TORCH.device_index(handle, &device_index) || TORCH.dimensions(handle, &dimensions) ||
      TORCH.sizes(handle, &sizes) || TORCH.strides(handle, &strides))
    return ask_python(step->operand, value, Py_None, NULL);
  if (dtype != expected->dtype || device_type != expected->device_type || device_index != expected->device_index ||
      dimensions != expected->dimensions || differs(sizes, expected->numbers, dimensions) ||
      differs(strides, expected->numbers + dimensions, dimensions))
    return NO;
  int found = truth_of(TORCH.requires_grad, TORCH.requires_grad_getter, value, *handle, expected->requires_grad);
  if (found != YES || expected->leaf < 0) return found;
  return truth_of(TORCH.leaf, TORCH.leaf_getter, value, handle, expected->leaf);
}

static PyObject *fetch(Step *step, PyObject **slots) {
  PyObject *base = step->op == OP_CONSTANT ? NULL : slots[step->value];
  switch (step->op) {
    case OP_CONSTANT: return Py_NewRef(step->operand);
    case OP_ATTRIBUTE: return PyObject_GetAttr(base, step->operand);
    case OP_NAMESPACE: return PyObject_GenericGetDict(base, NULL);
    case OP_ITEM: return item(base, step->operand);
    case OP_CELL:
      if (PyCell_Check(base) && PyCell_GET(base)) return Py_NewRef(PyCell_GET(base));
      return PyObject_GetAttr(base, step->operand);
    default: return PyObject_CallOneArg(step->operand, base); /* OP_FETCH */
  }
}

static int check(Step *step, PyObject **slots) {
  PyObject *value = step->value >= 0 ? slots[step->value] : Py_None;
  switch (step->op) {
    case OP_TYPE: return (PyObject *)Py_TYPE(value) == step->operand;
    case OP_IDENTITY: return value == step->operand;
    case OP_EQUALS: return equals(value, step->operand);
    case OP_LENGTH: return has_length(value, step->result);
    case OP_KEYS: return has_keys(step, value);
    case OP_HAS_KEY: return contains(value, step->operand);
    case OP_LACKS_KEY: {
      int found = contains(value, step->operand);
      return found == FAILED ? FAILED : !found;
    }
    case OP_EMPTY_ITEMS: return holds_nothing(value, step->operand);
    case OP_MEMBER: {
      PyObject *found;
      if (!PyType_Check(value) || !((PyTypeObject *)value)->tp_mro) return NO;
      return has_member((PyTypeObject *)value, step->operand, step->result, step->extra, &found);
    }
    case OP_MEMBERS: return has_members(step);
    case OP_CODE: return has_code(value, step->operand);
    case OP_TENSOR: return is_tensor(step, value);
    case OP_TRUTH: {
      int found = PyObject_IsTrue(value);
      return found < 0 ? FAILED : found == step->result;
    }
    case OP_HAS_ATTRIBUTE: {
      int found = has_attribute(value, step->operand);
      return found == FAILED ? FAILED : found == step->result;
    }
    case OP_SAME_AS: return value == slots[step->result];
    case OP_DISTINCT: return are_distinct(step->operand, slots);
    case OP_STATE: {
      PyObject *found = call_without_arguments(step->operand);
      if (!found) return FAILED;
      int alike = found == step->extra && step->result ? YES : same(found, step->extra);
      Py_DECREF(found);
      return alike;
    }
    default: return ask_python(step->operand, value, step->extra, slots); /* OP_PYTHON */
  }
}

/* Run the steps; give how many slots were filled, `verdict` says how it ended. */
static Py_ssize_t walk(Evaluator *self, PyObject **slots, int *verdict) {
  Py_ssize_t filled = self->arguments;
  *verdict = YES;
  for (Step *step = self->steps, *end = step + self->count; step < end; step++) {
    if (step->op <= OP_LAST_FETCH) {
      PyObject *found = fetch(step, slots);
      if (!found) {
        *verdict = FAILED;
        break;
      }
      slots[filled++] = found;
    } else if ((*verdict = check(step, slots)) != YES)
      break;
  }
  return filled;
}

static PyObject *evaluator_call(PyObject *me, PyObject *const *given, size_t flagged, PyObject *names) {
  Evaluator *self = (Evaluator *)me;
  Py_ssize_t count = PyVectorcall_NARGS(flagged), i;
  PyObject *few[96], **slots = few, *result;
  if (count != self->arguments || (names && PyTuple_GET_SIZE(names)))
    return PyErr_Format(PyExc_TypeError, "takes %zd positional arguments", self->arguments);
  /* the slots, then what the body gets, with the free place before it that a callee may use */
  if (self->slots + self->passed + 1 > 96 &&
      !(slots = PyMem_Malloc((self->slots + self->passed + 1) * sizeof *slots)))
    return PyErr_NoMemory();
  for (i = 0; i < count; i++) slots[i] = given[i];
  int verdict;
  Py_ssize_t filled = walk(self, slots, &verdict);
  if (verdict == YES) {
    PyObject **arguments = slots + self->slots + 1;
    for (i = 0; i < self->passed; i++) arguments[i] = slots[self->pass[i]];
    result = PyObject_Vectorcall(self->body, arguments, (size_t)self->passed | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
  } else if (verdict == NO)
    result = Py_NewRef(self->miss);
  else if (PyErr_ExceptionMatches(self->errors)) {
    PyErr_Clear();
    result = Py_NewRef(self->miss);
  } else
    result = NULL;
  if (filled > self->arguments) {
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    if (!result) PyErr_Fetch(&type, &error, &trace); /* a finalizer must not see the error */
    while (filled-- > self->arguments) Py_DECREF(slots[filled]);
    if (!result) PyErr_Restore(type, error, trace);
  }
  if (slots != few) PyMem_Free(slots);
  return result;
}

static int visit_evaluator(PyObject *me, visitproc visit, void *arg) {
  Evaluator *self = (Evaluator *)me;
  Py_VISIT(Py_TYPE(me));
  Py_VISIT(self->body);
  Py_VISIT(self->miss);
  Py_VISIT(self->errors);
  for (Py_ssize_t i = 0; i < self->count; i++) {
    Py_VISIT(self->steps[i].operand);
    Py_VISIT(self->steps[i].extra);
  }
  return 0;
}

static int clear_evaluator(PyObject *me) { /* the body goes last: the steps never run without it */
  Evaluator *self = (Evaluator *)me;
  Py_ssize_t count = self->count;
  self->count = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyMem_Free(self->steps[i].metadata);
    Py_CLEAR(self->steps[i].operand);
    Py_CLEAR(self->steps[i].extra);
  }
  if (self->miss) Py_SETREF(self->body, Py_NewRef(self->miss));
  return 0;
}

static void free_evaluator(PyObject *me) {
  Evaluator *self = (Evaluator *)me;
  PyTypeObject *type = Py_TYPE(me);
  PyObject_GC_UnTrack(me);
  clear_evaluator(me);
  PyMem_Free(self->steps);
  PyMem_Free(self->pass);
  Py_XDECREF(self->body);
  Py_XDECREF(self->miss);
  Py_XDECREF(self->errors);
  type->tp_free(me);
  Py_DECREF(type);
}

/* (keys, dtype, device type, device index, requires grad, leaf, sizes and strides) -> Metadata; NULL with an error. */
static Metadata *read_metadata(PyObject *facts) {
  unsigned long long keys;
  int dtype, device_type, device_index, requires_grad, leaf;
  PyObject *numbers;
  if (!PyArg_ParseTuple(facts, "KiiiiiO!", &keys, &dtype, &device_type, &device_index, &requires_grad, &leaf,
                        &PyTuple_Type, &numbers))
    return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(numbers);
  Metadata *made = PyMem_Malloc(sizeof *made + count * sizeof(int64_t));
  if (!made) {
    PyErr_NoMemory();
    return NULL;
  }
  *made = (Metadata){keys, dtype, device_type, device_index, (int8_t)requires_grad, (int8_t)leaf, count / 2};
  for (Py_ssize_t i = 0; i < count; i++) made->numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
  return made;
}

static int read_step(Step *step, PyObject *row) { /* (op, value, result, operand, extra, metadata or None) */
  PyObject *operand, *extra, *metadata;
  if (!PyArg_ParseTuple(row, "innOOO", &step->op, &step->value, &step->result, &operand, &extra, &metadata)) return 0;
  if (metadata != Py_None && !(step->metadata = read_metadata(metadata))) return 0;
  step->operand = Py_NewRef(operand);
  step->extra = Py_NewRef(extra);
  return 1;
}

/* Evaluator(arguments, slots, rows, passed, body, miss, errors) */
static PyObject *make_evaluator(PyTypeObject *type, PyObject *given, PyObject *names) {
  Py_ssize_t arguments, slots;
  PyObject *rows, *passed, *body, *miss, *errors;
  if (!PyArg_ParseTuple(given, "nnO!O!OOO", &arguments, &slots, &PyTuple_Type, &rows, &PyTuple_Type, &passed, &body,
                        &miss, &errors))
    return NULL;
  Evaluator *self = (Evaluator *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->call = evaluator_call;
  self->body = Py_NewRef(body);
  self->miss = Py_NewRef(miss);
  self->errors = Py_NewRef(errors);
  self->arguments = arguments;
  self->slots = slots;
  self->passed = PyTuple_GET_SIZE(passed);
  self->steps = PyMem_Calloc(PyTuple_GET_SIZE(rows) + 1, sizeof *self->steps);
  self->pass = PyMem_Calloc(self->passed + 1, sizeof *self->pass);
  if (!self->steps || !self->pass) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < self->passed; i++) self->pass[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(passed, i));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
    self->count = i + 1;
    if (!read_step(&self->steps[i], PyTuple_GET_ITEM(rows, i))) break;
  }
  if (PyErr_Occurred()) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject *)self;
}

static PyMemberDef MEMBERS[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Evaluator, call), READONLY, NULL},
    {"body", T_OBJECT, offsetof(Evaluator, body), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_new, make_evaluator},   {Py_tp_dealloc, free_evaluator}, {Py_tp_traverse, visit_evaluator},
    {Py_tp_clear, clear_evaluator}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, MEMBERS},
    {0, NULL},
};

static PyType_Spec SPEC = {
    "plumbline.Evaluator", sizeof(Evaluator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, SLOTS,
};

static PyGetSetDef *getter_of(PyObject *descriptor) {
  if (Py_TYPE(descriptor) != &PyGetSetDescr_Type) return NULL;
  return ((PyGetSetDescrObject *)descriptor)->d_getset;
}

/* Give the Evaluator type.  places: None, or (offset of the handle, offset of the keys, address of dtype, device
 * type, device index, dimensions, sizes, strides, requires grad or 0, leaf or 0); getters: two descriptors. */
PyObject *plumbline_guard_evaluator(PyObject *places, PyObject *getters) {
  unsigned long long dtype, device_type, device_index, dimensions, sizes, strides, requires_grad, leaf;
  if (places != Py_None) {
    if (!PyArg_ParseTuple(places, "nnKKKKKKKK", &TORCH.tensor, &TORCH.keys, &dtype, &device_type, &device_index,
                          &dimensions, &sizes, &strides, &requires_grad, &leaf))
      return NULL;
    TORCH.dtype = (NumberOf)(uintptr_t)dtype;
    TORCH.device_type = (NumberOf)(uintptr_t)device_type;
    TORCH.device_index = (NumberOf)(uintptr_t)device_index;
    TORCH.dimensions = (LengthOf)(uintptr_t)dimensions;
    TORCH.sizes = (NumbersOf)(uintptr_t)sizes;
    TORCH.strides = (NumbersOf)(uintptr_t)strides;
    TORCH.requires_grad = (TruthOf)(uintptr_t)requires_grad;
    TORCH.leaf = (TruthOf)(uintptr_t)leaf;
    TORCH.requires_grad_getter = getter_of(PyTuple_GET_ITEM(getters, 0));
    TORCH.leaf_getter = getter_of(PyTuple_GET_ITEM(getters, 1));
    if (!TORCH.requires_grad_getter || !TORCH.leaf_getter)
      return PyErr_Format(PyExc_TypeError, "the getters of a tensor are no getset descriptors");
  }
  return PyType_FromSpec(&SPEC);
}
