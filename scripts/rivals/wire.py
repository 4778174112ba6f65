#!/usr/bin/env python3
"""Megabytes a second of messages over one link of this machine: Mingle's edges beside libp2p alone and a plain socket."""

import argparse
import json
import subprocess

from report import head, row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wire", metavar="BINARY", required=True, help="the example `wire` of mingle-examples")
    arguments = parser.parse_args()
    head("wire, MB/s")
    command = [arguments.wire, "--json"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        found = json.loads(line)
        size = f"{found['bytes'] / 1e6:.1f} MB over {found['transport'].upper()}"
        row("wire", f"parcels, {size}", "libp2p alone", "MB/s", found["mingle_mb_s"], found["libp2p_mb_s"],
            found["mingle_per_libp2p"])
        row("wire", f"libp2p alone, {size}", "a plain TCP socket", "MB/s", found["libp2p_mb_s"], found["socket_mb_s"],
            found["libp2p_per_socket"])


if __name__ == "__main__":
    main()
