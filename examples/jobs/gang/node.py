# ruff: noqa: INP001, T201  an example is a program that prints
"""Rank 0 adds up what the other ranks send it."""

import os
import socket
import time

rank, world = int(os.environ["EVA_RANK"]), int(os.environ["EVA_WORLD_SIZE"])
address = (os.environ["EVA_MASTER_ADDR"], int(os.environ["EVA_MASTER_PORT"]))

if rank == 0:
    total = 0
    with socket.create_server(address) as server:
        for _ in range(world - 1):
            connection, _ = server.accept()
            with connection:
                total += int(connection.makefile().readline())
    print(f"the others sent {total}")
else:
    while True:  # rank 0 may come up a moment later
        try:
            connection = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    with connection:
        connection.sendall(f"{rank * 10}\n".encode())
    print(f"rank {rank} has sent its share")
