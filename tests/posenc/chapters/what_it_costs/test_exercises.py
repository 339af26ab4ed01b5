"""Chapter 7's planted mistakes, and right answers of another kind."""

import statistics

from slips import mistakes, slip

from posenc.timing import sample_stream


def no_wait(kernel, stream):
    start = stream.clock()
    kernel()
    return stream.clock() - start


def wait_for_each(kernel, stream):
    for _ in range(10):
        stream.flush()
        stream.synchronize()
        start, _, end = stream.record(), kernel(), stream.record()
        stream.synchronize()
    return start.elapsed_time(end) / 1000


def block(kernel, stream):
    start = stream.record()
    for _ in range(100):
        stream.flush()
        kernel()
    end = stream.record()
    stream.synchronize()
    return start.elapsed_time(end) / 1000 / 100


PLANTED = mistakes(
    rotation_bytes={
        "numbers, not bytes": "result / itemsize",
        "that reads x once and writes the result once": "itemsize * heads * length * d * 2",
        "that reads x once and writes the result": "itemsize * (heads + 1) * length * d * 2",
        "read where they stand": "+ t + → + n +",
        "cos and sin are read too": "+ t + → +",
        "the minus in front of the second half is an operation": "+ minus →",
        "the minus stands in front of one half": "n // 2 + n // 2 → n + n",
        "cat copies": "+ cat →",
        "rotate_half moves bytes too": "+ minus + cat →",
        "what the operations write": "n + t + n → n; cat = n + n → cat = n; n // 2 + n // 2 → n // 2; n + n + n → n",
        "what the operations read": "t + n → t; cat = n + n → cat = n; n // 2 + n // 2 → n // 2; n + n + n → n + n",
        "it is not 55,574,528 bytes: that is 13.2 times the numbers of x": "result + 3 * itemsize * heads * length * d",
    },
    time_kernel={
        "milliseconds": "1e3 * result",
        "microseconds": "1e6 * result",
        "it did not wait for the device": no_wait,
        "the device was idle": wait_for_each,
        "the kernel and the flush": "stream.flush() → before, _ = stream.record(), stream.flush(); ((start → ((before",
        "the kernel and the flush: flush": block,
        "synchronize before you ask": "stream.synchronize() →",
        "it reads 80 µs off a kernel of 40 µs": "2 * result",
        "and 40 µs off one of 90 µs": "40e-6",
        "still in the cache": "stream.flush() →",
        "the first calls are in it": "range(30) → range(4); [5:] →; sorted(times)[len(times) // 2] → sum(times) / 4",
        "take the median": "sorted(times)[len(times) // 2] → sum(times) / len(times)",
    },
    faster={
        "which need 500 µs for bytes and 1 µs for launches and 100 µs": "'first'",
        'it returned 1: return "first" or "second"': "1",
        "the slower one": "< → >",
        "the bytes alone": "'first' if first.bytes < second.bytes else 'second'",
        "the launches alone": "'first' if first.kernels < second.kernels else 'second'",
        "it adds the two times": "max( → sum((; per_launch) → per_launch))",
    },
    decode_step={
        "return two tensors": "keys",
        "the scores should be a tensor of shape (2, 6)": "(keys, keys)",
        "it is NoneType": "(result[0], None)",
        "should be torch.float64": "[each.float() for each in result]",
        "right to a few digits": "[position]), d) → [position]), d).float()",
        "the key goes into the cache as it came": (
            "rotate(key[:, None], angle) → key[:, None];"
            "@ keys.mT → @ rotate(keys, angles(torch.arange(keys.shape[1]), d)).mT"
        ),
        "the key goes into the cache as it came, or": "rotate(key[:, None], angle) → key[:, None]",
        "in front of the cache": "[keys, key] → [key, keys]",
        "it rotates the whole cache": (
            "torch.cat([keys, key], dim=1) → rotate(torch.cat([keys, key], dim=1), angles(torch.arange(6), d));"
            "rotate(key[:, None], angle) → key[:, None]"
        ),
        "or turned to position 0": "rotate(key[:, None], angle) → rotate(key[:, None], 0 * angle)",
        "the length of the cache is not the position": "[position] → [keys.shape[1]]",
        "the new key is turned to position + 1": "[position] → [position + 1]",
        "have stayed, and the last is not the key turned by its position": "[position] → [position + 9]",
        "have changed, and are to stay": "(result[0], 2 * result[1])",
        "the keys are turned and the query is not": "rotate(query[:, None], angle) → query[:, None]",
        "or to position 0": "rotate(query[:, None], angle) → rotate(query[:, None], 0 * angle)",
        "the division by √d": "/ math.sqrt(d) →",
        "the scores are not: rotated query times every key of the new cache, over √d (at [0, 0]": (
            "rotate(query[:, None], angle) → rotate(query[:, None], angles(torch.tensor([position + 1]), d))"
        ),
    },
    longest_bias={
        "it returned 16383.9999995": "math.sqrt(memory / (heads * itemsize))",
        "needs more than 17,179,869,183 bytes": "math.ceil(math.sqrt(memory / (heads * itemsize)))",
        "T appears squared": "math.isqrt →",
        "every head has a bias of its own": "heads * →",
        "that counts numbers": "* itemsize →",
        "7 is not the longest text for 17,179,869,184 bytes, 32 heads, itemsize 2: its bias takes 3,136": "7",
    },
)

RIGHT = [
    ("rotation_bytes", slip("rotation_bytes", "torch.tensor(result)")),
    ("time_kernel", slip("time_kernel", "sorted(times)[len(times) // 2] → min(times)")),
    ("time_kernel", slip("time_kernel", "sorted(times)[len(times) // 2] → torch.tensor(times).double().median()")),
    ("time_kernel", lambda kernel, stream: statistics.median(sample_stream(kernel, stream, seconds=0.005)[1])),
    ("decode_step", slip("decode_step", "[*result]")),
]
