"""One peer of hivemind, which averages with the others repeatedly until its standard input ends.

Arguments: the number of parameters, the number of peers, and the addresses of a peer that runs already.
"""

import json
import os
import sys
import threading

import hivemind
import torch

# Timeout of a step that finds no group; it is then begun again.
STEP_S = 60.0


def say(event, **rest):
    """Writes an event as a line of JSON."""
    print(json.dumps({"event": event, **rest}), flush=True)


def end_with_input():
    """Ends the process once its standard input is closed."""
    sys.stdin.read()
    os._exit(0)


def main():
    parameters, peers, initial = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    dht = hivemind.DHT(initial_peers=initial, host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True, startup_timeout=60)
    say("listening", addresses=[str(address) for address in dht.get_visible_maddrs()])
    averager = hivemind.averaging.DecentralizedAverager(
        [torch.randn(parameters)], dht, start=True, prefix="rounds", target_group_size=peers,
        min_matchmaking_time=1.0, request_timeout=1.0,
    )
    threading.Thread(target=end_with_input, daemon=True).start()
    while True:
        try:
            group = averager.step(timeout=STEP_S)
        except Exception:  # whatever the error, the round has failed
            continue
        say("round", members=len(group))


if __name__ == "__main__":
    main()
