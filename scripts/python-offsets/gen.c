/*
 * Prints, as one JSON object, where CPython keeps what trace reads from outside. Compiled once per interpreter against its own
 * headers by generate.mjs. A field that the headers lack is null.
 */
#define Py_BUILD_CORE 1
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_dict.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#include "internal/pycore_tstate.h"
#include "internal/pycore_debug_offsets.h"
#endif

#define OPEN(group) printf("  \"%s\": {", group), first = 1
#define CLOSE() printf("},\n")
#define NUMBER(name, value) printf("%s\"%s\": %zu", first ? "" : ", ", name, (size_t)(value)), first = 0
#define FIELD(name, type, member) NUMBER(name, offsetof(type, member))
#define ABSENT(name) printf("%s\"%s\": null", first ? "" : ", ", name), first = 0

static int first;

static void print_runtime(void) {
  OPEN("runtime");
  FIELD("interpretersHead", _PyRuntimeState, interpreters.head);
  FIELD("interpretersMain", _PyRuntimeState, interpreters.main);
  CLOSE();
  OPEN("interpreter");
  FIELD("next", struct _is, next);
#if PY_VERSION_HEX >= 0x030b0000
  FIELD("threadsHead", struct _is, threads.head);
#else
  FIELD("threadsHead", struct _is, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030c0000
  FIELD("modules", struct _is, imports.modules);
#else
  FIELD("modules", struct _is, modules);
#endif
#if PY_VERSION_HEX >= 0x030e0000
  FIELD("asyncioTasks", struct _is, asyncio_tasks_head);
#else
  ABSENT("asyncioTasks");
#endif
  CLOSE();
  OPEN("gc");
#if PY_VERSION_HEX >= 0x030e0000
  ABSENT("inRuntime");
  FIELD("inInterpreter", struct _is, gc.young);
#elif PY_VERSION_HEX >= 0x03090000
  ABSENT("inRuntime");
  FIELD("inInterpreter", struct _is, gc.generations);
#else
  FIELD("inRuntime", _PyRuntimeState, gc.generations);
  ABSENT("inInterpreter");
#endif
  NUMBER("generationSize", sizeof(struct gc_generation));
  CLOSE();
  OPEN("gil");
#if PY_VERSION_HEX >= 0x030c0000
  FIELD("pointer", struct _is, ceval.gil);
  FIELD("lastHolder", struct _gil_runtime_state, last_holder);
  FIELD("locked", struct _gil_runtime_state, locked);
#else
  ABSENT("pointer");
  FIELD("lastHolder", _PyRuntimeState, ceval.gil.last_holder);
  FIELD("locked", _PyRuntimeState, ceval.gil.locked);
#endif
  CLOSE();
}

static void print_thread(void) {
  OPEN("thread");
  FIELD("previous", PyThreadState, prev);
  FIELD("next", PyThreadState, next);
  FIELD("interpreter", PyThreadState, interp);
  FIELD("threadId", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
  FIELD("nativeThreadId", PyThreadState, native_thread_id);
#else
  ABSENT("nativeThreadId");
#endif
#if PY_VERSION_HEX >= 0x030d0000
  ABSENT("cframe");
  FIELD("currentFrame", PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
  FIELD("cframe", PyThreadState, cframe);
  FIELD("currentFrame", _PyCFrame, current_frame);
#else
  ABSENT("cframe");
  FIELD("currentFrame", PyThreadState, frame);
#endif
#if PY_VERSION_HEX >= 0x030e0000
  FIELD("asyncioTask", _PyThreadStateImpl, asyncio_running_task);
  FIELD("asyncioTasks", _PyThreadStateImpl, asyncio_tasks_head);
#else
  ABSENT("asyncioTask");
  ABSENT("asyncioTasks");
#endif
  CLOSE();
}

static void print_frame(void) {
  OPEN("frame");
#if PY_VERSION_HEX >= 0x030b0000
#if PY_VERSION_HEX >= 0x030d0000
  FIELD("code", _PyInterpreterFrame, f_executable);
  FIELD("instruction", _PyInterpreterFrame, instr_ptr);
#else
  FIELD("code", _PyInterpreterFrame, f_code);
  FIELD("instruction", _PyInterpreterFrame, prev_instr);
#endif
  FIELD("previous", _PyInterpreterFrame, previous);
  FIELD("owner", _PyInterpreterFrame, owner);
  FIELD("locals", _PyInterpreterFrame, localsplus);
#else
  FIELD("code", PyFrameObject, f_code);
  FIELD("instruction", PyFrameObject, f_lasti);
  FIELD("previous", PyFrameObject, f_back);
  ABSENT("owner");
  FIELD("locals", PyFrameObject, f_localsplus);
#endif
  CLOSE();
}

static void print_code(void) {
  OPEN("code");
  FIELD("constants", PyCodeObject, co_consts);
  FIELD("names", PyCodeObject, co_names);
  FIELD("firstLine", PyCodeObject, co_firstlineno);
  FIELD("filename", PyCodeObject, co_filename);
  FIELD("name", PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030b0000
  FIELD("qualifiedName", PyCodeObject, co_qualname);
  FIELD("localNames", PyCodeObject, co_localsplusnames);
  FIELD("bytecode", PyCodeObject, co_code_adaptive);
#else
  ABSENT("qualifiedName");
  FIELD("localNames", PyCodeObject, co_varnames);
  FIELD("bytecode", PyCodeObject, co_code);
#endif
#if PY_VERSION_HEX >= 0x030c0000
  FIELD("version", PyCodeObject, co_version);
#else
  ABSENT("version");
#endif
#if PY_VERSION_HEX >= 0x030a0000
  FIELD("lineTable", PyCodeObject, co_linetable);
#else
  FIELD("lineTable", PyCodeObject, co_lnotab);
#endif
  CLOSE();
}

static void print_objects(void) {
  OPEN("object");
  FIELD("references", PyObject, ob_refcnt);
  FIELD("type", PyObject, ob_type);
  FIELD("size", PyVarObject, ob_size);
  FIELD("typeName", PyTypeObject, tp_name);
  CLOSE();
  OPEN("unicode");
  FIELD("length", PyASCIIObject, length);
  FIELD("state", PyASCIIObject, state);
  NUMBER("asciiData", sizeof(PyASCIIObject));
  NUMBER("compactData", sizeof(PyCompactUnicodeObject));
  CLOSE();
  OPEN("payload");
  FIELD("bytes", PyBytesObject, ob_sval);
  FIELD("tuple", PyTupleObject, ob_item);
  FIELD("float", PyFloatObject, ob_fval);
  CLOSE();
  OPEN("int");
#if PY_VERSION_HEX >= 0x030c0000
  FIELD("size", PyLongObject, long_value.lv_tag);
  FIELD("digits", PyLongObject, long_value.ob_digit);
#else
  FIELD("size", PyVarObject, ob_size);
  FIELD("digits", PyLongObject, ob_digit);
#endif
  CLOSE();
}

static void print_containers(void) {
  OPEN("dict");
  FIELD("used", PyDictObject, ma_used);
  FIELD("keys", PyDictObject, ma_keys);
  FIELD("values", PyDictObject, ma_values);
  CLOSE();
  /* Up to 3.10 in Objects/dict-common.h, which is not installed: dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, dk_indices. */
  OPEN("dictKeys");
#if PY_VERSION_HEX >= 0x030b0000
  ABSENT("size");
  FIELD("indexBytesLog2", PyDictKeysObject, dk_log2_index_bytes);
  FIELD("kind", PyDictKeysObject, dk_kind);
  FIELD("entries", PyDictKeysObject, dk_nentries);
  FIELD("indices", PyDictKeysObject, dk_indices);
#else
  NUMBER("size", 8);
  ABSENT("indexBytesLog2");
  ABSENT("kind");
  NUMBER("entries", 32);
  NUMBER("indices", 40);
#endif
  CLOSE();
  OPEN("set");
  FIELD("used", PySetObject, used);
  FIELD("mask", PySetObject, mask);
  FIELD("table", PySetObject, table);
  CLOSE();
  OPEN("list");
  FIELD("items", PyListObject, ob_item);
  CLOSE();
  OPEN("typeObject");
  FIELD("basicSize", PyTypeObject, tp_basicsize);
  FIELD("itemSize", PyTypeObject, tp_itemsize);
  FIELD("flags", PyTypeObject, tp_flags);
  FIELD("base", PyTypeObject, tp_base);
  FIELD("dict", PyTypeObject, tp_dict);
  FIELD("dictOffset", PyTypeObject, tp_dictoffset);
  FIELD("cachedKeys", PyHeapTypeObject, ht_cached_keys);
  CLOSE();
  OPEN("callable");
  FIELD("functionCode", PyFunctionObject, func_code);
  FIELD("functionGlobals", PyFunctionObject, func_globals);
  FIELD("functionClosure", PyFunctionObject, func_closure);
  FIELD("methodFunction", PyMethodObject, im_func);
  FIELD("methodSelf", PyMethodObject, im_self);
  FIELD("builtinSelf", PyCFunctionObject, m_self);
  FIELD("cell", PyCellObject, ob_ref);
  FIELD("weakReference", PyWeakReference, wr_object);
  CLOSE();
}

static void print_generator(void) {
  OPEN("generator");
#if PY_VERSION_HEX >= 0x030b0000
  ABSENT("frame");
  FIELD("innerFrame", PyGenObject, gi_iframe);
  FIELD("state", PyGenObject, gi_frame_state);
  ABSENT("depth");
  ABSENT("stack");
#if PY_VERSION_HEX >= 0x030e0000
  FIELD("stackTop", _PyInterpreterFrame, stackpointer);
#else
  FIELD("stackTop", _PyInterpreterFrame, stacktop);
#endif
#else
  FIELD("frame", PyGenObject, gi_frame);
  ABSENT("innerFrame");
  ABSENT("state");
#if PY_VERSION_HEX >= 0x030a0000
  FIELD("depth", PyFrameObject, f_stackdepth);
  FIELD("stack", PyFrameObject, f_valuestack);
  ABSENT("stackTop");
#else
  ABSENT("depth");
  ABSENT("stack");
  FIELD("stackTop", PyFrameObject, f_stacktop);
#endif
#endif
  CLOSE();
}

/* Where a 3.13 process itself states the offsets: the first field of _PyRuntime. */
static void print_self_description(void) {
#if PY_VERSION_HEX >= 0x030d0000
  OPEN("selfDescription");
  FIELD("version", _Py_DebugOffsets, version);
  FIELD("freeThreaded", _Py_DebugOffsets, free_threaded);
  FIELD("interpretersHead", _Py_DebugOffsets, runtime_state.interpreters_head);
  FIELD("interpreterNext", _Py_DebugOffsets, interpreter_state.next);
  FIELD("threadsHead", _Py_DebugOffsets, interpreter_state.threads_head);
  FIELD("gilPointer", _Py_DebugOffsets, interpreter_state.ceval_gil);
  FIELD("threadPrevious", _Py_DebugOffsets, thread_state.prev);
  FIELD("threadNext", _Py_DebugOffsets, thread_state.next);
  FIELD("threadInterpreter", _Py_DebugOffsets, thread_state.interp);
  FIELD("currentFrame", _Py_DebugOffsets, thread_state.current_frame);
  FIELD("nativeThreadId", _Py_DebugOffsets, thread_state.native_thread_id);
  FIELD("frameCode", _Py_DebugOffsets, interpreter_frame.executable);
  FIELD("frameInstruction", _Py_DebugOffsets, interpreter_frame.instr_ptr);
  FIELD("framePrevious", _Py_DebugOffsets, interpreter_frame.previous);
  FIELD("frameOwner", _Py_DebugOffsets, interpreter_frame.owner);
  FIELD("frameLocals", _Py_DebugOffsets, interpreter_frame.localsplus);
  FIELD("codeFirstLine", _Py_DebugOffsets, code_object.firstlineno);
  FIELD("codeFilename", _Py_DebugOffsets, code_object.filename);
  FIELD("codeName", _Py_DebugOffsets, code_object.name);
  FIELD("codeQualifiedName", _Py_DebugOffsets, code_object.qualname);
  FIELD("codeLineTable", _Py_DebugOffsets, code_object.linetable);
  FIELD("codeLocalNames", _Py_DebugOffsets, code_object.localsplusnames);
  FIELD("codeBytecode", _Py_DebugOffsets, code_object.co_code_adaptive);
  CLOSE();
#else
  printf("  \"selfDescription\": null,\n");
#endif
}

int main(void) {
  printf("{\n");
  print_runtime();
  print_thread();
  print_frame();
  print_code();
  print_objects();
  print_containers();
  print_generator();
  print_self_description();
  printf("  \"minor\": %d, \"version\": \"%s\", \"hex\": %u\n}\n", PY_MINOR_VERSION, PY_VERSION, (unsigned)PY_VERSION_HEX);
  return 0;
}
