"""The nearest ten of 10,000 and 100,000 vectors by sqlite-vec and by a numpy scan, the peers of benches/vectors.rs.

pip install sqlite-vec==0.1.9 numpy==2.4.6

Run with one thread, after the bench, which leaves vectors and queries in var/bench:
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benches/peers/vectors.py
Prints `bench vectors_10000_sqlite_vec <value> ms` (median of the queries) in the form of the Rust bench. Both peers are exact.
PERCEPT_BENCH_MILLION=1 adds numpy over 1,000,000 (sqlite-vec only if the file and the time are there: one query).
"""

import os
import sqlite3
import time

import numpy as np
import sqlite_vec

DIMS = 512
LIMIT = 10
QUERIES = 50


def load(name):
    return np.fromfile(f"var/bench/{name}.f32", dtype=np.float32).reshape(-1, DIMS)


def median_ms(function, queries):
    times = []
    function(queries[0])
    for query in queries:
        start = time.perf_counter()
        function(query)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[len(times) // 2]


def sqlite_vec_search(vectors):
    connection = sqlite3.connect(":memory:")
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.execute(f"create virtual table v using vec0(embedding float[{DIMS}] distance_metric=cosine)")
    with connection:
        connection.executemany(
            "insert into v(rowid, embedding) values (?, ?)",
            ((row + 1, vector.tobytes()) for row, vector in enumerate(vectors)),
        )
    sql = f"select rowid, distance from v where embedding match ? and k = {LIMIT}"
    return lambda query: connection.execute(sql, (query.tobytes(),)).fetchall()


def numpy_search(vectors):
    def search(query):
        cosines = vectors @ query
        best = np.argpartition(cosines, -LIMIT)[-LIMIT:]
        return [(int(row) + 1, 0) for row in best[np.argsort(-cosines[best])]]

    return search


queries = load("queries")[:QUERIES]
counts = [10_000, 100_000] + ([1_000_000] if os.environ.get("PERCEPT_BENCH_MILLION") else [])
for count in counts:
    vectors = load(f"vectors-{count}")
    numpy = numpy_search(vectors)
    print(f"bench vectors_{count}_numpy {median_ms(numpy, queries):.3f} ms", flush=True)
    if count <= 100_000:
        peer = sqlite_vec_search(vectors)
        assert [row for row, _ in peer(queries[0])] == [row for row, _ in numpy(queries[0])], "the peers disagree"
        print(f"bench vectors_{count}_sqlite_vec {median_ms(peer, queries):.3f} ms", flush=True)
