/** Names of include/uapi/linux/capability.h by bit, without `CAP_`; the last is of Linux 5.9. */
const NAMES: readonly string[] = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE ' +
  'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN ' +
  'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE ' +
  'MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'
).split(' ');

/** The capabilities of a mask by name; bits that have none yet by number. */
export function capabilityNames(mask: bigint): readonly string[] {
  const names: string[] = [];
  for (let bit = 0; mask >> BigInt(bit) !== 0n; bit++)
    if (((mask >> BigInt(bit)) & 1n) === 1n) names.push(NAMES[bit] ?? `capability ${bit}`);
  return names;
}

/** The known capabilities that a mask lacks, by name. */
export function lackingCapabilities(mask: bigint): readonly string[] {
  return NAMES.filter((_, bit) => ((mask >> BigInt(bit)) & 1n) === 0n);
}

/** Whether a mask holds a capability of that name. */
export function holdsCapability(mask: bigint, name: string): boolean {
  const bit = NAMES.indexOf(name);
  return bit >= 0 && ((mask >> BigInt(bit)) & 1n) === 1n;
}
