/* Uses one core, as hard as it can, for the seconds given: the neighbour that makes a healthy server wait for the CPU. */

process.stdout.write(`READY ${process.pid} 0\n`);
const end = Date.now() + Number(process.argv[2] ?? 10) * 1000;
while (Date.now() < end);
