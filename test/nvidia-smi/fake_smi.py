"""Answers as nvidia-smi does, from a capture of a real one, and misbehaves on demand.

Its settings are a JSON file, FAKE_SMI_CONFIG, read again at each line that it prints:
  capture     file of sections "# <state> :: <what>"
  state       idle or load
  processes   [[pid, MiB], ...] in place of those of the capture
  values      {column: cell} in place of those of the capture; a list of such objects: one GPU each
  drop        columns that this driver does not know; lie: it lists them nevertheless
  behaviour   ok, hang, hang-hard, die, garbage, endless, slow, crlf, text:<what it says>; missing-xml: text in its place; refuse-xml
  after       so many lines are printed as they should be, before it misbehaves
  only        the first argument (its beginning) that this is about; all by default
"""

import json
import os
import re
import signal
import sys
import time

CONFIG = os.environ["FAKE_SMI_CONFIG"]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def settings():
    for _ in range(20):
        try:
            with open(CONFIG) as file:
                return json.load(file)
        except ValueError:
            time.sleep(0.005)  # being written
    raise SystemExit("the settings cannot be read")


def sections(path):
    found, name, body = {}, None, []
    with open(path) as file:
        lines = file.read().split("\n")
    i = 0
    while i < len(lines):
        match = re.match(r"# (\w+) :: (.*)$", lines[i])
        if match and i > 0 and lines[i - 1].startswith("####"):
            name = (match.group(1), match.group(2).split(" (")[0])
            i += 1
            while not lines[i].startswith("####"):
                i += 1
            body = found.setdefault(name, [])
        elif not lines[i].startswith("####" * 10):
            body.append(lines[i])
        i += 1
    return {name: "\n".join(body).strip("\n") for name, body in found.items()}


def emit(text, config):
    if config.get("behaviour") == "crlf":
        text = text.replace("\n", "\r\n")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)


class Machine:
    def __init__(self, config):
        self.config = config
        self.sections = sections(config["capture"])

    def of(self, what):
        state = self.config.get("state", "load")
        for one in (state, "loaded" if state == "load" else state, "idle", "capabilities"):
            if (one, what) in self.sections:
                return self.sections[one, what]
        return ""

    def known(self):
        """Every name that the driver takes, and what its column is called."""
        names = {}
        for line in self.of("help-query-gpu").split("\n"):
            quoted = re.findall(r'"([^"]+)"', line) if re.match(r'^"', line) else []
            for name in quoted:
                names[name] = quoted
        return {k: v for k, v in names.items() if k not in self.config.get("drop", [])}

    def columns(self):
        """Of the capture, by name: header and one cell a GPU."""
        lines = [line for line in self.of("query-gpu").split("\n") if line.strip()]
        header = [cell.strip() for cell in lines[0].split(", ")]
        rows = [line.split(", ") for line in lines[1:]]
        rows = [row for row in rows if len(row) == len(header)]
        return {cell.split(" [")[0]: (cell, [row[i] for row in rows]) for i, cell in enumerate(header)}

    def help(self):
        drop = [] if self.config.get("lie") else self.config.get("drop", [])
        lines = []
        for line in self.of("help-query-gpu").split("\n"):
            if not line.startswith('"'):
                lines.append(line)
                continue
            names = [name for name in re.findall(r'"([^"]+)"', line) if name not in drop]
            if names:
                lines.append(" or ".join('"%s"' % name for name in names))
        return "\n".join(lines) + "\n"

    def query(self, asked):
        """Header and rows of --query-gpu."""
        known, columns = self.known(), self.columns()
        values = self.config.get("values", {})
        values = values if isinstance(values, list) else [values]
        count = max([len(values)] + [len(cells) for _, cells in columns.values()])
        header, cells = [], []
        for name in asked:
            if name not in known:
                return 'Field "%s" is not a valid field to query.\n' % name, []
            same = next((one for one in known[name] if one in columns), name)
            title, row = columns.get(same, (same, ["[N/A]"]))
            header.append(title)
            column = []
            for gpu in range(count):
                mine = values[min(gpu, len(values) - 1)]
                cell = next((mine[one] for one in known[name] if one in mine), None)
                column.append(row[min(gpu, len(row) - 1)] if cell is None else cell)
            cells.append(column)
        return ", ".join(header) + "\n", [", ".join(row) + "\n" for row in zip(*cells)]

    def apps(self, asked):
        lines = [line for line in self.of("query-compute-apps").split("\n") if line.strip()]
        header = [cell.strip() for cell in lines[0].split(", ")]
        aliases = {"used_memory": "used_gpu_memory", "name": "process_name"}
        names = [cell.split(" [")[0] for cell in header]
        rows = [line.split(", ") for line in lines[1:]]
        processes = self.config.get("processes")
        if processes is not None:
            gpus = self.columns()
            rows = []
            for pid, memory, *gpu in processes:
                row = ["[N/A]"] * len(header)
                values = self.config.get("values", {})
                one = values[gpu[0] if gpu else 0] if isinstance(values, list) else values
                put = {"pid": str(pid), "process_name": "python, a server", "used_gpu_memory": memory}
                put["used_gpu_memory"] = memory if isinstance(memory, str) else "%d MiB" % memory
                put["gpu_bus_id"] = one.get("pci.bus_id", gpus["pci.bus_id"][1][0])
                put["gpu_uuid"] = one.get("uuid", gpus["uuid"][1][0])
                for key, value in put.items():
                    row[names.index(key)] = value
                rows.append(row)
        at = [names.index(aliases.get(name, name)) for name in asked]
        out = ", ".join(header[i] for i in at) + "\n"
        return out + "".join(", ".join(row[i] for i in at) + "\n" for row in rows)

    def pmon(self):
        lines = self.of("pmon").split("\n")
        processes = self.config.get("processes")
        if processes is None:
            return "\n".join(lines) + "\n"
        head = [line for line in lines if line.startswith("#")]
        width = len(head[0].replace("#", " ").split())
        rows = []
        for pid, _, *gpu in processes:
            cells = [str(gpu[0] if gpu else 0), str(pid), "C", "37", "5"] + ["-"] * width
            rows.append("    " + "  ".join(cells[: width - 1] + ["python"]))
        return "\n".join(head + rows) + "\n"

    def document(self):
        """-q as it is, or as XML with the names that nvidia-smi gives to elements."""
        text = self.of("query")
        pids = [pid for pid, *_ in self.config.get("processes") or []]
        numbers = iter(pids)
        if pids:
            text = re.sub(r"(Process ID\s+: )\d+", lambda m: m.group(1) + str(next(numbers, 1)), text)
        return text

    def xml(self):
        out = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', "<nvidia_smi_log>"]
        text = self.document()
        bus = re.search(r"^GPU (\S+)$", text, re.M).group(1)
        out.append('\t<gpu id="%s">' % bus)
        out.append("<product_name>NVIDIA &lt;H100&gt; &amp; more</product_name>")
        uuid = re.search(r"GPU UUID\s+: (\S+)", text).group(1)
        out.append("<uuid>%s</uuid><mig_devices>" % uuid)
        device = r"    MIG Device\n        Index +: (\d+)\n +GPU Instance ID +: (\d+)\n +Compute Instance ID +: (\d+)\n"
        memory = r"[\s\S]*?Shared FB Memory Usage\n +Total +: (.*)\n +Reserved +: (.*)\n +Used +: (.*)\n"
        for index, gi, ci, total, reserved, used in re.findall(device + memory, text):
            out.append(
                "<mig_device><index>%s</index><gpu_instance_id>%s</gpu_instance_id>"
                "<compute_instance_id>%s</compute_instance_id><device_attributes/>"
                "<fb_memory_usage><total>%s</total><reserved>%s</reserved><used>%s</used></fb_memory_usage>"
                "</mig_device>" % (index, gi, ci, total, reserved, used)
            )
        out.append("</mig_devices><fb_memory_usage><total>81559 MiB</total></fb_memory_usage><processes>")
        process = r"GPU instance ID +: (\S+)\n +Compute instance ID +: (\S+)\n +Process ID +: (\d+)\n +Type +: (\S+)\n +Name +: (.*)\n +Used GPU Memory +: (.*)"
        for gi, ci, pid, kind, name, used in re.findall(process, text):
            out.append(
                "<process_info><gpu_instance_id>%s</gpu_instance_id><compute_instance_id>%s</compute_instance_id>"
                "<pid>%s</pid><type>%s</type><process_name>%s</process_name><used_memory>%s</used_memory>"
                "</process_info>" % (gi, ci, pid, kind, escape(name), used)
            )
        out.append("</processes></gpu></nvidia_smi_log>")
        return "\n".join(out) + "\n"


def hold_this_process():
    """Makes SIGKILL leave a zombie that its parent is not told of, as a process in the driver is not gone either: a tracer holds it."""
    import ctypes
    import subprocess

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(0x59616D61, -1, 0, 0, 0)  # PR_SET_PTRACER: any, where Yama asks
    tracer = (
        "import ctypes, sys, time\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]\n"
        "print(libc.ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)\n"  # PTRACE_SEIZE
        "time.sleep(float(sys.argv[2]))\n"
    )
    seconds = str(settings().get("held", 3))
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", tracer, str(os.getpid()), seconds],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    child.stdout.readline()


def misbehave(config):
    behaviour = config.get("behaviour", "ok")
    if behaviour in ("hang", "hang-hard"):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        if behaviour == "hang-hard":
            hold_this_process()
        while settings().get("behaviour") == behaviour:
            time.sleep(0.05)
        raise SystemExit(0)
    if behaviour == "die":
        raise SystemExit(9)
    if behaviour == "garbage":
        emit("\x1b[31m\x00\ufffd, , ,,\n" + "0, , [Unknown\n" + "7 " * 50 + "\n", config)
    if behaviour == "endless":
        while settings().get("behaviour") == behaviour:
            emit("x" * 65536, config)
    if behaviour == "slow":
        time.sleep(2)
    if behaviour.startswith("text:"):
        emit(behaviour[5:] + "\n", config)
        raise SystemExit(255)


def main(arguments):
    printed = 0

    def check():
        config = settings()
        is_about = any(one.startswith(config.get("only", "")) for one in arguments)
        if is_about and printed >= config.get("after", 0):
            misbehave(config)
        return config

    with open(CONFIG + ".log", "a") as log:
        log.write(" ".join(arguments) + "\n")
    config = check()
    first = arguments[0] if arguments else ""
    machine = Machine(config)
    if first == "--help-query-gpu":
        emit(machine.help(), config)
    elif first == "-L":
        emit(machine.of("list") + "\n", config)
    elif first == "pmon":
        emit(machine.pmon(), config)
    elif first == "-q" and "-x" in arguments and config.get("behaviour") == "refuse-xml":
        emit("Option -x is not recognized.\n", config)
        raise SystemExit(2)
    elif first == "-q":
        is_xml = "-x" in arguments and config.get("behaviour") != "missing-xml"
        emit(machine.xml() if is_xml else machine.document() + "\n", config)
    elif first.startswith("--query-compute-apps="):
        emit(machine.apps(first.split("=", 1)[1].split(",")), config)
    elif first.startswith("--query-gpu="):
        asked = first.split("=", 1)[1].split(",")
        header, rows = machine.query(asked)
        emit(header, config)
        if not rows:
            raise SystemExit(2)
        period = float(arguments[arguments.index("-lms") + 1]) / 1e3 if "-lms" in arguments else 0
        next_at = time.monotonic()
        while True:
            printed += len(rows)
            emit("".join(rows), config)
            if period == 0:
                break
            next_at += period / float(config.get("speed", 1))
            time.sleep(max(0, next_at - time.monotonic()))
            before, config = config, check()
            if config != before:
                machine.config = config
                header, rows = machine.query(asked)
    else:
        emit("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n", config)
        raise SystemExit(1)


main(sys.argv[1:])
