# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# ctf.py: writes traces as LTTng's kernel tracer does (CTF 1.8), from events that a test makes up.

import struct
import uuid

INTEGERS = {'u32': ('I', 4, False), 'i32': ('i', 4, True), 'u64': ('Q', 8, False), 'i64': ('q', 8, True)}

# The fields that latency-tracker reads.
EVENTS = {
    'sched_switch': 'prev_comm:string prev_tid:i32 prev_prio:i32 prev_state:i64 next_comm:string next_tid:i32 next_prio:i32',
    'sched_waking': 'comm:string tid:i32 prio:i32 target_cpu:i32',
    'irq_softirq_raise': 'vec:u32',
    'irq_softirq_entry': 'vec:u32',
    'irq_softirq_exit': 'vec:u32',
    'syscall_entry_read': 'fd:u32',
    'syscall_exit_read': 'ret:i64',
    'block_rq_insert': 'dev:u32 sector:u64 nr_sector:u32 rwbs:u32 tid:i32 comm:string',
    'block_rq_issue': 'dev:u32 sector:u64 nr_sector:u32 rwbs:u32 tid:i32 comm:string',
    'block_rq_complete': 'dev:u32 sector:u64 nr_sector:u32 error:i32 rwbs:u32',
    'lttng_statedump_block_device': 'dev:u32 diskname:string',
}
NUMBERS = {name: number for number, name in enumerate(EVENTS)}


def typed(of, name, more=''):
    if of == 'string':
        return f'string {name};'
    _, size, signed = INTEGERS[of]
    return f'integer {{ size = {size * 8}; align = 8; signed = {str(signed).lower()}; byte_order = le; {more}}} {name};'


class Trace:
    """A trace of one boot; times are ns of CLOCK_MONOTONIC."""

    def __init__(self, host, seed, since_1970):
        self.host, self.since_1970 = host, since_1970
        self.uuid, self.boot = uuid.UUID(int=seed), uuid.UUID(int=seed + (1 << 64))
        self.events = {}

    def event(self, cpu, time, name, **fields):
        text = struct.pack('<IQ', NUMBERS[name], time)
        for field in EVENTS[name].split():
            field, of = field.split(':')
            value = fields.pop(field)
            text += value.encode() + b'\0' if of == 'string' else struct.pack('<' + INTEGERS[of][0], value)
        assert not fields, f'{name}: {fields}'
        self.events.setdefault(cpu, []).append((time, text))

    def metadata(self):
        stamp = 'map = clock.monotonic.value; '
        header = typed('u32', 'magic') + 'integer { size = 8; align = 8; signed = false; } uuid[16];' + typed('u32', 'stream_id')
        context = ''.join(typed('u64', name, stamp) for name in ('timestamp_begin', 'timestamp_end'))
        context += ''.join(typed('u64', name) for name in ('content_size', 'packet_size', 'packet_seq_num', 'events_discarded'))
        context += typed('u32', 'cpu_id')
        events = ''.join(
            f'event {{ name = "{name}"; id = {number}; stream_id = 0; fields := struct {{ '
            + ' '.join(typed(*reversed(field.split(':'))) for field in EVENTS[name].split()) + ' }; };\n'
            for name, number in NUMBERS.items())
        return f'''/* CTF 1.8 */
trace {{ major = 1; minor = 8; uuid = "{self.uuid}"; byte_order = le; packet.header := struct {{ {header} }}; }};
env {{ hostname = "{self.host}"; domain = "kernel"; sysname = "Linux"; kernel_release = "7.2.12";
tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 14; }};
clock {{ name = "monotonic"; uuid = "{self.boot}"; freq = 1000000000; offset_s = {self.since_1970}; offset = 0; }};
stream {{ id = 0; event.header := struct {{ {typed('u32', 'id')} {typed('u64', 'timestamp', stamp)} }};
packet.context := struct {{ {context} }}; }};
{events}'''

    def write(self, directory, lost=None):
        """Writes the trace in two packets for each CPU. LOST: (CPU, number of events lost between its packets)."""
        directory.mkdir(parents=True)
        (directory / 'metadata').write_text(self.metadata())
        first = min(events[0][0] for events in self.events.values())
        last = max(events[-1][0] for events in self.events.values())
        for cpu, events in self.events.items():
            middle = len(events) // 2
            parts = [(first - 10, events[:middle]), (events[middle - 1][0] + 1, events[middle:])]
            data, discarded = b'', 0
            if lost and lost[0] == cpu:
                # A packet is closed only at the first event that fits again, so it counts what was lost after it.
                discarded, rest = lost[1], events[middle + lost[1]:]
                parts[1] = (rest[0][0] - 1, rest)
            for number, (begin, part) in enumerate(parts):
                body = b''.join(text for _, text in part)
                end = part[-1][0] if number == 0 else last + 10
                bits = (4 + 16 + 4 + 6 * 8 + 4 + len(body)) * 8
                data += struct.pack('<I16sI6QI', 0xc1fc1fc1, self.uuid.bytes, 0, begin, end, bits, bits, number, discarded, cpu)
                data += body
            (directory / f'channel_{cpu}').write_bytes(data)
