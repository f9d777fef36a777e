"""Changes to files that leave their outside valid, so that a reader gets to what is inside.

A mutator takes bytes, a largest size, a `random.Random` and `inner`, which changes bytes blindly
(libFuzzer's mutations, or `blind`). Bytes that it cannot take apart go to `inner` as they are.
"""

import copy
import gzip
import io
import json
import struct
import zipfile
import zlib

from broken_pictures import PNG_SIGNATURE, png_chunk

_ODD_BYTES = (b"\0", b"\xff", b"\n", b'"', b",", b"-1", b"9" * 20, b"nan", b"1e999", b"\r", b"_")
_ODD_VALUES = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, float("nan"), float("inf")),
    *("", "a", "\ud800", "<U300000000", "|O", "F64", [], {}, [[]], [None], {"": 0}, "x" * 300),
)


def blind(data, size, rng):
    """A few changes of bytes, for where there is no libFuzzer."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randint(0, len(made)), rng.choice((1, 1, 2, 8, 40))
        change = rng.randrange(5)
        if change == 0:
            made[at : at + length] = rng.randbytes(length)
        elif change == 1:
            del made[at : at + length]
        elif change == 2:
            made[at:at] = rng.choice(_ODD_BYTES)
        elif change == 3 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        else:
            start = rng.randint(0, len(made))
            made[at:at] = made[start : start + length]
    return bytes(made[:size])


def in_json(data, size, rng, inner):
    """JSON with one part changed, or text that is changed blindly."""
    if rng.random() < 0.2:
        return inner(data, size)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return inner(data, size)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = _changed(content, rng, inner)
    try:
        return json.dumps(content, ensure_ascii=True).encode()[:size]
    except RecursionError:
        return inner(data, size)


def _changed(content, rng, inner):
    """One value somewhere in plain data replaced, left out, doubled or moved."""
    holders = [holder for holder in _holders(content) if holder]
    if not holders:
        return copy.deepcopy(rng.choice(_ODD_VALUES))
    holder = rng.choice(holders)
    key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    change = rng.randrange(7)
    value = holder[key]
    if change == 0:
        del holder[key]
    elif change == 1:
        holder[key] = copy.deepcopy(rng.choice(_ODD_VALUES))
    elif change == 2:
        other = rng.choice(holders)
        holder[key] = json.loads(json.dumps(rng.choice(list(_values(other)))))
    elif change == 3 and isinstance(value, str):
        holder[key] = inner(value.encode(errors="replace"), 400).decode(errors="replace")
    elif change == 3 and isinstance(value, int | float):
        holder[key] = rng.choice((value + 1, value - 1, -value, value * 2, str(value)))
    elif change == 4:
        deep = value
        for _ in range(rng.choice((1, 1, 3, 40, 2000))):
            deep = [deep] if rng.random() < 0.5 else {"inner": deep}
            if rng.random() < 0.01:
                break
        holder[key] = deep
    elif change == 5 and isinstance(holder, list):
        holder.insert(key, value)
    elif isinstance(holder, dict):
        holder[rng.choice(("inner", "members", "class", "name", f"{key}x"))] = value
        if rng.random() < 0.5:
            del holder[key]
    return content


def _holders(content):
    todo = [content]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            yield one
            todo.extend(_values(one))


def _values(holder):
    return holder.values() if isinstance(holder, dict) else holder


def in_safetensors(data, size, rng, inner):
    """A safetensors file: its header, the description in it, its arrays, or just bytes."""
    length = int.from_bytes(data[:8], "little")
    try:
        head = json.loads(data[8 : 8 + length])
        body = data[8 + length :]
        part = rng.random()
        if part < 0.65:
            text = head["__metadata__"]["latem"]
            head["__metadata__"]["latem"] = in_json(text.encode(), size, rng, inner).decode()
        elif part < 0.8:
            head = json.loads(in_json(json.dumps(head).encode(), size, rng, inner))
        elif part < 0.9:
            body = inner(body, max(len(body), 1)).ljust(len(body), b"\0")[: len(body)]
        else:
            return inner(data, size)
        text = json.dumps(head).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return inner(data, size)
    return (struct.pack("<Q", len(text)) + text + body)[:size]


def in_gzip(data, size, rng, inner):
    """What a gzip file holds; of any other file, its bytes."""
    if data[:2] != b"\x1f\x8b" or rng.random() < 0.2:
        return inner(data, size)
    try:
        content = zlib.decompressobj(31).decompress(data, 1 << 16)
    except zlib.error:
        return inner(data, size)
    return gzip.compress(inner(content, size), mtime=0)[:size]


def in_zip(data, size, rng, inner):
    """One file of a zip archive: its content, its name, or how it is packed."""
    if rng.random() < 0.15:
        return inner(data, size)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = [(one.filename, archive.read(one), one) for one in archive.infolist()]
    except Exception:  # whatever a damaged archive raises
        return inner(data, size)
    if not files:
        return inner(data, size)
    chosen = rng.randrange(len(files))
    change = rng.random()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number, (name, content, one) in enumerate(files):
            packing = one.compress_type if one.compress_type in (0, 8) else 0
            if number == chosen and change < 0.08:
                name = inner(name.encode(), 60).decode(errors="replace") or "a"
            elif number == chosen and change < 0.12:
                continue
            elif number == chosen and change < 0.2:
                packing = 8 - packing
            elif number == chosen:
                content = inner(content, size)
            # not writestr with a name: it would store today's date
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return made.getvalue() if len(made.getvalue()) <= size else data


def in_png(data, size, rng, inner):
    """One chunk of a PNG, with the sum that belongs to it; of any other picture, its bytes."""
    if data[:8] != PNG_SIGNATURE or rng.random() < 0.15:
        return inner(data, size)
    chunks, place = [], 8
    while place + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    if not chunks:
        return inner(data, size)
    chosen = rng.randrange(len(chunks))
    kind, content = chunks[chosen]
    if kind == b"IDAT" and rng.random() < 0.7:
        unpacker = zlib.decompressobj()
        try:
            content = zlib.compress(inner(unpacker.decompress(content, 1 << 16), size))
        except zlib.error:
            content = inner(content, size)
    elif rng.random() < 0.1:
        kind = rng.choice((b"tRNS", b"PLTE", b"eXIf", b"iCCP", b"acTL", b"fcTL", b"zTXt", b"iTXt"))
    elif rng.random() < 0.1:
        chunks.insert(chosen, (kind, content))
    else:
        content = inner(content, size)
    chunks[chosen] = kind[:4].ljust(4, b"a"), content
    made = PNG_SIGNATURE + b"".join(png_chunk(*chunk) for chunk in chunks)
    return made[:size]


def in_mat(data, size, rng, inner):
    """One variable of a MATLAB file of version 5, unpacked if it is compressed."""
    if len(data) < 136 or data[124:128] != b"\0\x01IM" or rng.random() < 0.2:
        return inner(data, size)
    elements, place = [], 128
    while place + 8 <= len(data):
        kind, length = struct.unpack_from("<II", data, place)
        elements.append((kind, data[place + 8 : place + 8 + length]))
        place += 8 + length
    chosen = rng.randrange(len(elements))
    kind, content = elements[chosen]
    if kind == 15:
        try:
            content = zlib.decompressobj().decompress(content, 1 << 16)
        except zlib.error:
            return inner(data, size)
        content = zlib.compress(inner(content, size))
    else:
        content = inner(content, size)
    elements[chosen] = kind, content
    made = [struct.pack("<II", kind, len(content)) + content for kind, content in elements]
    return (data[:128] + b"".join(made))[:size]


def in_npy(data, size, rng, inner):
    """The header of a `.npy` file, with the length that belongs to it, or the numbers after it."""
    length = int.from_bytes(data[8:10], "little")
    head, body = data[10 : 10 + length], data[10 + length :]
    if data[:8] != b"\x93NUMPY\x01\0" or len(head) < length or rng.random() < 0.15:
        return inner(data, size)
    if rng.random() < 0.7:
        head = inner(head.rstrip(), 1000) + b"\n"
    else:
        body = inner(body, size)
    return (data[:8] + struct.pack("<H", len(head)) + head + body)[:size]


def after_name(names):
    """Mutator of what comes after a first line, which names a file of a folder."""
    names = [name.encode() for name in names]

    def mutate(data, size, rng, inner):
        name, _, content = data.partition(b"\n")
        if name not in names or rng.random() < 0.05:
            name = rng.choice(names)  # any other is not read
        else:
            content = inner(content, size)
        return (name + b"\n" + content)[:size]

    return mutate
