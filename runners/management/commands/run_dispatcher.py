"""manage.py run_dispatcher: start jobs, watch them, bring their results home; until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any

from django.core.management.base import BaseCommand

from runners.checks import TAG
from runners.dispatcher.loop import Dispatcher, make_owner
from runners.dispatcher.no_pickle import forbid_unpickling
from runners.scratch import remove_abandoned_scratch


class Command(BaseCommand):
    # Those of addresses and pages would load all that only web processes need.
    requires_system_checks = (TAG,)
    help = "Carry jobs to their end. Any number of dispatchers may run; SIGTERM ends one in order."

    def handle(self, *args: Any, **options: Any) -> None:
        # Before any runner, and with it a provider's client, is imported.
        forbid_unpickling()
        remove_abandoned_scratch()
        asyncio.run(_run(Dispatcher(make_owner())))
        # A thread may still read a report for minutes; nothing that it finds would be kept.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def _run(dispatcher: Dispatcher) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, dispatcher.stop)
    await dispatcher.run()
