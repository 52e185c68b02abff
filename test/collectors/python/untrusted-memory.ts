import type { TargetMemory } from '../../../collectors/python/objects.ts';
import { pointerAt } from '../../../src/platform/memory.ts';

/** What a reader needs, by `readInto` alone. */
export abstract class UntrustedMemory implements TargetMemory {
  abstract readInto(target: Buffer, address: number, length?: number): void;
  view(address: number, length: number): Buffer {
    const buffer = Buffer.alloc(length);
    this.readInto(buffer, address);
    return buffer;
  }
  forget(): void {}
  pointer(address: number): number {
    return pointerAt(this.view(address, 8), 0);
  }
  u32(address: number): number {
    return this.view(address, 4).readUInt32LE(0);
  }
  i32(address: number): number {
    return this.view(address, 4).readInt32LE(0);
  }
  i64(address: number): number {
    return Number(this.view(address, 8).readBigInt64LE(0));
  }
  cString(address: number, limit = 256): string {
    return this.view(address, limit).toString('latin1');
  }
}
