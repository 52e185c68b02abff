"""Unpacks what a connection brought."""

import msgpack

PACKET = msgpack.packb({"id": 1, "values": [1, 2, 3]}) * 4


def receive():
    unpacker = msgpack.Unpacker()
    unpacker.feed(PACKET)
    return sum(1 for _ in unpacker)
