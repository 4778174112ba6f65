#!/usr/bin/env python3
"""Packs scikit-learn's digits.csv.gz into digits.bin.gz.

usage: pack_digits.py digits.csv.gz digits.bin.gz

The table has 1,797 lines of 64 pixels (0 to 16) and a label. The result is the gzip of all labels
followed by all pixels, one byte each, without a time stamp, so that packing twice gives equal files.
"""

import gzip
import sys

source, target = sys.argv[1:]
with gzip.open(source, "rt") as table:
    rows = [[int(float(cell)) for cell in line.split(",")] for line in table]
assert len(rows) == 1797 and all(len(row) == 65 for row in rows)
assert all(0 <= pixel <= 16 for row in rows for pixel in row[:64])

packed = bytes(row[64] for row in rows) + bytes(pixel for row in rows for pixel in row[:64])
with open(target, "wb") as file:
    file.write(gzip.compress(packed, compresslevel=9, mtime=0))
