"""python -m tests.runners.sweeping GATE: sweep over and over, from when the file GATE is there.

A dispatcher sweeps every five minutes; this one does nothing else, so that several are at it at
once. One line on standard output for each sweep that raised nothing.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

import django
from django.db import DatabaseError


async def sweep_for_ever() -> None:
    from runners.dispatcher.loop import Dispatcher, make_owner

    dispatcher = Dispatcher(make_owner())
    dispatcher.holder.db.open("database", 4)
    while True:
        try:
            await dispatcher.sweep()
        except DatabaseError as error:  # as in a dispatcher's own loop: the next one tries again
            print(f"no database: {error}", flush=True)
        else:
            print("swept", flush=True)
        await asyncio.sleep(0.05)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    django.setup()
    print("ready", flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.001)
    asyncio.run(sweep_for_ever())


if __name__ == "__main__":
    main()
