"""Writes a safetensors file of Llama 2 7B's shape: its 291 tensors in bf16, the rows of each scaled to a size in MiB."""

import json
import random
import struct
import sys

HIDDEN, INNER, VOCABULARY, LAYERS = 4096, 11008, 32000, 32


def tensors(scale):
    """Names and shapes. Norms stay whole, as they are in models of every size."""

    def matrix(rows, columns):
        return [max(1, round(rows * scale)), columns]

    yield "model.embed_tokens.weight", matrix(VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", [HIDDEN]
        yield prefix + "mlp.down_proj.weight", matrix(HIDDEN, INNER)
        yield prefix + "mlp.gate_proj.weight", matrix(INNER, HIDDEN)
        yield prefix + "mlp.up_proj.weight", matrix(INNER, HIDDEN)
        yield prefix + "post_attention_layernorm.weight", [HIDDEN]
        for which in "kovq":
            yield prefix + f"self_attn.{which}_proj.weight", matrix(HIDDEN, HIDDEN)
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", matrix(VOCABULARY, HIDDEN)


def size(shape):
    return 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)


def write(path, mebibytes):
    full = sum(size(shape) for _, shape in tensors(1))
    table = list(tensors(mebibytes * 1024 * 1024 / full))
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in table:
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size(shape)]}
        at += size(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    # Slices of one random block: as hard to compress as real weights, and made at the speed of the disk.
    rng = random.Random(7)
    block = memoryview(rng.randbytes(16 << 20))
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at:
            start = rng.randrange(8 << 20)
            at -= file.write(block[start : start + min(at, 8 << 20)])


if __name__ == "__main__":
    write(sys.argv[1], float(sys.argv[2]))
