import { isAddress, Unsound } from './objects.ts';
import { TYPE_FLAG, has, type PythonValues, type TypeFacts } from './values.ts';

/** `PyModuleObject.md_dict`: the first field behind the head, in every version. */
const MODULE_DICT = 16;
/** Where a managed dict lies before its object: 3.11 has the values before the dict, 3.12 on one word for both. */
const MANAGED_DICT = -24;
const MANAGED_VALUES = -32;
/** `_dictvalues` of 3.13: capacity, size, embedded and valid, a byte each, then the values. */
const VALUES_HEAD = 8;
const VALUES_VALID = 3;
/** More interpreters than this no process has. */
const INTERPRETER_LIMIT = 4096;

/** Reads the attributes that instances and modules keep in dicts, by the layout of each version. */
export class PythonAttributes {
  readonly values: PythonValues;

  constructor(values: PythonValues) {
    this.values = values;
  }

  /** The names and values in an instance's `__dict__`; none where it has no such thing. Slots and properties are not among them. */
  *of(address: number): Generator<readonly [name: string, value: number], void> {
    for (const [key, value] of this.#entries(address)) yield [this.values.objects.text(key), value];
  }

  /** One entry of an instance's `__dict__`; null where it has none of this name. */
  get(address: number, name: string): number | null {
    return this.values.find(this.#entries(address), name);
  }

  /**
   * The `__dict__` of a module by its name in `sys.modules` of the main interpreter; null when it
   * is not imported.
   */
  moduleDict(name: string): number | null {
    const { memory, symbols, table } = this.values.objects;
    const modules = memory.pointer(this.#mainInterpreter() + table.interpreter.modules);
    const module = this.values.get(modules, name);
    if (module === null || module === symbols.none) return null;
    return memory.pointer(module + MODULE_DICT);
  }

  /** A variable of a module; null when it has none of this name, or is not imported. */
  global(module: string, name: string): number | null {
    const dict = this.moduleDict(module);
    return dict === null ? null : this.values.get(dict, name);
  }

  /**
   * The one that the program began in. Those it made since stand before it in the list, and it
   * counts only as one of that.
   */
  #mainInterpreter(): number {
    const { memory, symbols, table } = this.values.objects;
    const main = memory.pointer(symbols.runtime + table.runtime.interpretersMain);
    let at = memory.pointer(symbols.runtime + table.runtime.interpretersHead);
    for (let count = 0; isAddress(at) && count < INTERPRETER_LIMIT; count++) {
      if (at === main) return main;
      at = memory.pointer(at + table.interpreter.next);
    }
    throw new Unsound('range');
  }

  #entries(address: number): Iterable<readonly [number, number]> {
    const type = this.values.typeOf(address);
    const { minor } = this.values.objects.table;
    if (minor >= 11 && has(type.flags, TYPE_FLAG.managedDict))
      return minor === 11
        ? this.#managed311(address, type)
        : minor === 12
          ? this.#managed312(address, type)
          : this.#managed313(address, type);
    // Negative: counted from the end of an object of varying size, as only subclasses of int, tuple and bytes have it.
    return type.dictOffset > 0 ? this.#dict(this.#pointer(address + type.dictOffset)) : [];
  }

  #managed311(address: number, type: TypeFacts): Iterable<readonly [number, number]> {
    const values = this.#pointer(address + MANAGED_VALUES);
    return values === 0
      ? this.#dict(this.#pointer(address + MANAGED_DICT))
      : this.values.keyed(type.cachedKeys, values);
  }

  #managed312(address: number, type: TypeFacts): Iterable<readonly [number, number]> {
    const either = this.#pointer(address + MANAGED_DICT);
    // The values' address less one marks that they are values.
    return either % 2 === 1 ? this.values.keyed(type.cachedKeys, either + 1) : this.#dict(either);
  }

  #managed313(address: number, type: TypeFacts): Iterable<readonly [number, number]> {
    const dict = this.#pointer(address + MANAGED_DICT);
    if (dict !== 0 || !has(type.flags, TYPE_FLAG.inlineValues)) return this.#dict(dict);
    const head = address + type.basicSize;
    const isValid = this.values.objects.memory.view(head + VALUES_VALID, 1)[0] === 1;
    return isValid ? this.values.keyed(type.cachedKeys, head + VALUES_HEAD) : [];
  }

  #dict(address: number): Iterable<readonly [number, number]> {
    return address === 0 ? [] : this.values.entries(address);
  }

  #pointer(address: number): number {
    return this.values.objects.memory.pointer(address);
  }
}
